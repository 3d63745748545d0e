"""The style sheet of reports: black on white, one column, readable on a phone and on paper."""

CSS = """
:root { color-scheme: light; --ink: #222; --soft: #6a6a6a; --line: #ddd8ce; --accent: #1f5a94; --paper: #fffefb; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 5rem; max-width: 46rem; color: var(--ink); background: var(--paper);
  font: 1.0625rem/1.55 Charter, "Bitstream Charter", "Sitka Text", Cambria, Georgia, serif;
  font-variant-numeric: oldstyle-nums; text-rendering: optimizeLegibility; overflow-wrap: break-word; }
h1 { margin: 0 0 .4rem; font-size: 2.3rem; line-height: 1.12; font-weight: 600; letter-spacing: -.01em; }
h2 { margin: 3.2rem 0 .9rem; padding-top: 1rem; border-top: 1px solid var(--line); font-size: 1.45rem;
  line-height: 1.25; font-weight: 600; }
h3 { margin: 2rem 0 .5rem; font-size: 1.1rem; font-weight: 600; }
h4 { margin: 1.1rem 0 .3rem; font-size: 1rem; font-style: italic; font-weight: 400; }
p { margin: 0 0 .8rem; }
a { color: var(--accent); text-decoration-thickness: 1px; text-underline-offset: .15em; }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin-top: 1.3rem; font-size: .95rem; }
.soft, figcaption, .source { color: var(--soft); }
.lead { font-size: 1.15rem; }
.warning { padding-left: .8rem; border-left: 3px solid #b03a48; }
code, .moves, .hash { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .82em;
  font-variant-numeric: normal; overflow-wrap: anywhere; }
.source { margin: .2rem 0 1.4rem; font-size: .82rem; line-height: 1.45; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; line-height: 1.35;
  font-variant-numeric: lining-nums tabular-nums; }
th, td { padding: .34rem 1.1rem .34rem 0; text-align: left; vertical-align: baseline;
  border-bottom: 1px solid var(--line); }
th { font-weight: 400; font-style: italic; color: var(--soft); border-bottom-color: #999; }
.number { text-align: right; white-space: pre; }
td:last-child, th:last-child { padding-right: .2rem; }
figure { margin: 1.2rem 0; }
figure svg { display: block; max-width: 100%; height: auto; }
figure.chart svg { width: 100%; min-width: 32rem; }
figure.broad svg { min-width: 43rem; }
figcaption { margin-top: .5rem; font-size: .88rem; line-height: 1.4; }
.entry { display: flex; flex-wrap: wrap; gap: .4rem 1.4rem; align-items: flex-start; margin: 0 0 1.4rem; }
.entry figure { flex: 0 0 auto; max-width: 100%; margin: .35rem 0 0; }
.entry > div { flex: 1 1 15rem; min-width: 0; }
pre { margin: .3rem 0; overflow-x: auto; }
.entry p { margin-bottom: .35rem; }
.legend { display: grid; grid-template-columns: auto 1fr; gap: .35rem .7rem; align-items: center; margin: 0 0 1.4rem;
  font-size: .92rem; color: var(--soft); }
.legend svg { display: block; }
dl.facts { display: grid; grid-template-columns: auto 1fr; gap: .15rem 1.1rem; margin: 0; font-size: .95rem; }
dl.facts dt { color: var(--soft); font-style: italic; }
dl.facts dd { margin: 0; }
details { margin: 0 0 1rem; }
summary { cursor: pointer; color: var(--soft); }
.boards { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 1rem 1.6rem; }
.moves { margin: .5rem 0; line-height: 1.5; }
@media (max-width: 30rem) { body { padding-top: 1.4rem; font-size: 1rem; } h1 { font-size: 1.8rem; } }
@media print { .screen { display: none; } details::details-content { content-visibility: visible; }
  body { max-width: none; padding: 0; font-size: 10pt; background: #fff; } nav { display: none; }
  figure, .entry, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } a { color: inherit; }
  figure.chart svg, figure.broad svg { min-width: 0; } .wide { overflow: visible; } @page { margin: 18mm; } }
""".strip()
