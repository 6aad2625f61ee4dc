"""How the report looks.

For: the style sheet of the page. Must never know: its contents.
"""

STYLE = """
:root { --paper: #ffffff; --ink: #1d2126; --soft: #5c6670; --line: #d9dde2; --tint: #f4f6f8;
  --accent: #0b6aa2; color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #15181c; --ink: #e4e7ea; --soft: #9aa4ae; --line: #363c44; --tint: #1d2126;
    --accent: #63b5ea; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 28px 24px 48px; }
h1 { font-size: 26px; margin: 0 0 2px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 34px 0 6px; }
h3 { font-size: 14px; margin: 18px 0 4px; }
p { margin: 0 0 10px; }
.lead, .note { color: var(--soft); }
.note { font-size: 13px; }
.best { background: var(--tint); border-left: 4px solid var(--accent); padding: 14px 18px;
  margin: 18px 0 8px; border-radius: 4px; }
.tiles { display: flex; flex-wrap: wrap; gap: 10px 34px; margin-bottom: 10px; }
.tiles div { display: flex; flex-direction: column; }
.tiles b { font-size: 22px; font-variant-numeric: tabular-nums; }
.tiles span { color: var(--soft); font-size: 13px; }
.row { display: flex; flex-wrap: wrap; gap: 0 56px; }
.wide, .figure { overflow-x: auto; }
.figure svg { display: block; max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { color: var(--soft); font-weight: 600; vertical-align: bottom; }
th.n, td.n { text-align: right; padding: 4px 0 4px 14px; }
th.n { white-space: normal; min-width: 60px; }
.facts td { white-space: normal; vertical-align: top; }
.facts td:first-child { white-space: nowrap; color: var(--soft); }
.facts thead { display: none; }
.top { color: var(--accent); }
pre { background: var(--tint); padding: 12px 16px; overflow-x: auto; font-size: 13px;
  border-radius: 4px; }
summary { cursor: pointer; color: var(--accent); }
footer { margin-top: 40px; color: var(--soft); font-size: 13px; }
@media print { details > pre { display: block; } h2 { break-after: avoid; }
  section { break-inside: avoid; } }
"""
