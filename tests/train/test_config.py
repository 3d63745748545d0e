"""A run's config: defaults, overrides, round trip, hash, and errors that name the place."""

from pathlib import Path

import pytest

from models.network import NetworkConfig
from train.config import ConfigError, RunConfig, config_table, from_document, load_config

PRESETS = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    return path


def error_of(path: Path, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(path, list(overrides))
    return str(caught.value).replace(str(path.parent) + "/", "")


def test_a_config_needs_only_a_variant(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, "variant: asylum\n"))
    assert config.variant == "asylum"
    assert config.search.num_simulations == 16
    assert config.learner.learning_rate == 1e-3
    assert config.replay.window_base == 250_000
    assert config.options == {}


def test_overrides_are_parsed_as_yaml_and_the_last_one_wins(tmp_path: Path) -> None:
    path = write(tmp_path, "variant: chess\nsearch:\n  num_simulations: 24\n")
    overrides = [
        "search.num_simulations=64", "search.num_simulations=32", "learner.learning_rate=1e-4", "name=null",
        "options.friendly_fire=true", "network.global_pooling=true", "variant=asylum",
    ]  # fmt: skip
    config = load_config(path, overrides)
    assert config.search.num_simulations == 32
    assert config.learner.learning_rate == 1e-4
    assert config.name is None
    assert config.options == {"friendly_fire": True}
    assert config.network.global_pooling is True
    assert config.variant == "asylum"


def test_the_resolved_yaml_reads_back_to_the_same_config(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, "variant: n\noptions: {off: true}\nname: '007'\nseed: 9\n"))
    again = load_config(write(tmp_path, config.to_yaml()))
    assert again == config
    assert from_document(config.to_document()) == config
    assert again.config_hash() == config.config_hash()


def test_the_hash_changes_with_what_is_computed_and_not_with_where(tmp_path: Path) -> None:
    path = write(tmp_path, "variant: gardner\n")
    plain = load_config(path).config_hash()
    assert load_config(path, ["name=other", "run_root=/tmp/x", "ray.address=head:6379"]).config_hash() == plain
    for override in ("seed=2", "workers=3", "search.c_scale=0.5", "options.x=true", "variant=chess"):
        assert load_config(path, [override]).config_hash() != plain


def test_a_config_never_changes_after_loading(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, "variant: gardner\n"))
    with pytest.raises(ValueError, match="frozen"):
        config.seed = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("variant: a\nselfplay:\n  game_per_worker: 3\n",
         "run.yaml:3: selfplay.game_per_worker: unknown key, did you mean 'games_per_worker'?"),
        ("variant: a\nselfplay: {gamez: 3}\n",
         "run.yaml:2: selfplay.gamez: unknown key, did you mean 'games_per_worker'?"),
        ("variant: a\nnum_simulations: 3\n",
         "run.yaml:2: num_simulations: unknown key, did you mean 'search.num_simulations'?"),
        ("variant: a\ninference: {zzz: 3}\n",
         "run.yaml:2: inference.zzz: unknown key (known here: precision, match_from, match_games)"),
        ("variant: a\nray: {address: auto}\n",
         "run.yaml:2: ray: address is 'auto', expected HOST:PORT, such as 10.0.0.1:6379"),
        ("variant: a\nworkers: 0\nray: {inference_actors: 1}\n",
         "run.yaml: top level: ray.inference_actors is set, but workers is 0: one process evaluates for itself"),
        ("seed: 3\n", "run.yaml: variant: missing, expected a value"),
        ("variant: a\nseed: true\n", "run.yaml:2: seed: expected an integer, got true (true or false)"),
        ("variant: a\nseed: 3.0\n", "run.yaml:2: seed: expected an integer, got 3.0 (a number)"),
        ("variant: a\nseed: '3'\n", "run.yaml:2: seed: expected an integer, got '3' (a string)"),
        ("variant: a\nseed: -1\n", "run.yaml:2: seed: expected at least 0, got -1 (an integer)"),
        ("variant: 3\n", "run.yaml:1: variant: expected a string, got 3 (an integer)"),
        ("variant: a\nlearner:\n\n  clip_norm: 0\n",
         "run.yaml:4: learner.clip_norm: expected more than 0.0, got 0 (an integer)"),
        ("variant: a\nlearner:\n  clip_norm: .inf\n",
         "run.yaml:3: learner.clip_norm: expected a number, got '.inf' (a string)"),
        ("variant: a\nlearner: {passes: true}\n",
         "run.yaml:2: learner.passes: expected a number, got true (true or false)"),
        ("variant: a\nsearch: null\n", "run.yaml:2: search: expected a mapping, got nothing (null)"),
        ("variant: a\nsearch: [1]\n", "run.yaml:2: search: expected a mapping, got a list"),
        ("variant: a\npiece_values: {weighting: games}\n",
         "run.yaml:2: piece_values.weighting: expected 'game' or 'position', got 'games' (a string)"),
        ("variant: a\nplugins: mine.py\n", "run.yaml:2: plugins: expected a list, got 'mine.py' (a string)"),
        ("variant: a\nsearch: {fast_simulations: 17}\n",
         "run.yaml:2: search: fast_simulations is 17, expected at most num_simulations = 16"),
        ("variant: a\nselfplay: {max_plies: 4}\n",
         "run.yaml:2: selfplay: random_plies + stagger_plies is 4, expected fewer than max_plies = 4"),
        ("variant: a\noptions: {x: on}\n",
         "run.yaml:2: options.x: expected true or false, got 'on' (a string)"),
        ("variant: a\nname: ../up\n",
         "run.yaml:2: name: expected a plain name (letters, digits, _ . + -), got '../up' (a string)"),
        ("variant: a\nevaluation: {games: 7}\n",
         "run.yaml:2: evaluation.games: expected a multiple of 2, got 7 (an integer)"),
        ("variant: a\nvariant: b\n", "run.yaml:2:1: duplicate key 'variant', first given in line 1"),
        ("variant: a\nseed: !!int 3\n",
         "run.yaml:2:7: tags (tag:yaml.org,2002:int) are not allowed: only plain data"),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    assert error_of(write(tmp_path, text)) == message


def test_every_fault_is_reported_at_once(tmp_path: Path) -> None:
    message = error_of(write(tmp_path, "seed: x\nworkers: -1\nnope: 1\n"))
    assert [line.split(": ")[1] for line in message.splitlines()] == ["variant", "seed", "workers", "nope"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("search.simulations=3", "--set: search.simulations: unknown key, did you mean 'num_simulations'?"),
        ("search.num_simulations=many",
         "--set: search.num_simulations: expected an integer, got 'many' (a string)"),
        ("seed", "--set seed: expected KEY=VALUE, such as search.num_simulations=32"),
        ("=3", "--set =3: expected KEY=VALUE, such as search.num_simulations=32"),
        ("seed.x=3", "--set seed.x=3: seed is an integer, expected a mapping"),
        ("options={x: on}", "--set: options.x: expected true or false, got 'on' (a string)"),
        ("seed=*x", "--set seed=*x: aliases (*x) are not allowed: write the value out"),
    ],
)  # fmt: skip
def test_a_faulty_override_is_named(tmp_path: Path, override: str, message: str) -> None:
    assert error_of(write(tmp_path, "variant: a\nseed: 3\noptions: {x: true}\n"), override) == message


def test_the_network_section_has_the_fields_and_defaults_of_the_network() -> None:
    section = RunConfig(variant="a").network
    assert NetworkConfig(**section.model_dump()) == NetworkConfig()


def test_the_table_explains_every_key() -> None:
    table = config_table()
    assert "| `variant` | `(required)` |" in table
    assert "| `search.num_simulations` | `16` |" in table
    assert "None" not in table
    assert "| null |" not in table


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
def test_every_preset_loads(preset: Path) -> None:
    load_config(preset)


def test_an_unknown_section_from_the_command_line_is_blamed_on_it(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("variant: chess\n")
    with pytest.raises(ConfigError, match=r"^--set: searchh: unknown key, did you mean 'search'"):
        load_config(path, ["searchh.x=3"])


@pytest.mark.parametrize("name", ["08", "1e3", "true", "007x", "plain", "null"])
def test_every_name_is_read_back_from_the_resolved_config(tmp_path, name):
    config = from_document({"variant": "chess", "name": name})
    path = tmp_path / "c.yaml"
    path.write_text(config.to_yaml())
    assert load_config(path) == config
