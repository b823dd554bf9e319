/**
 * Colors and type match the web UI (src/web/platform/app/tokens.css), whose build has the font; a server without it uses the system's font.
 */
export const signInStyle = `@font-face {
  font-family: 'Inter Variable'; font-weight: 100 900; font-display: swap;
  src: url('/fonts/inter-latin-wght-normal.woff2') format('woff2');
}
:root {
  color-scheme: light;
  --text: #23211d; --quiet: #57524a; --page: #fbfaf8; --card: #fff; --sunken: #f4f2ed; --hover: #f1eee8; --line: #e5e1d9; --edge: #cdc7bb; --accent: #0a7567; --strong: #075f53; --on-accent: #fff; --problem: #b13425; --problem-soft: #fae8e4;
}
:root[data-theme='dark'] {
  color-scheme: dark;
  --text: #ede9e1; --quiet: #bab3a6; --page: #171614; --card: #1e1d1a; --sunken: #131210; --hover: #262420; --line: #33302b; --edge: #4c4840; --accent: #4fd1b8; --strong: #7fe3cf; --on-accent: #06231e; --problem: #ff9483; --problem-soft: #42211b;
}
@media (prefers-color-scheme: dark) {
  :root:not([data-theme='light']) {
    color-scheme: dark;
    --text: #ede9e1; --quiet: #bab3a6; --page: #171614; --card: #1e1d1a; --sunken: #131210; --hover: #262420; --line: #33302b; --edge: #4c4840; --accent: #4fd1b8; --strong: #7fe3cf; --on-accent: #06231e; --problem: #ff9483; --problem-soft: #42211b;
  }
}
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; padding: 12vh 1rem 3rem; background: var(--page); color: var(--text); font: .875rem/1.5 'Inter Variable', system-ui, sans-serif; font-feature-settings: 'cv05', 'cv08', 'ss03'; }
header, main { max-width: 25rem; margin: 0 auto; }
.brand { display: inline-flex; align-items: center; gap: .65rem; color: var(--text); font-size: 1rem; font-weight: 640; letter-spacing: -.015em; text-decoration: none; }
.brand svg { color: var(--accent); }
main { margin-top: 1.5rem; padding: 1.75rem 2rem 1.25rem; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
h1 { margin: 0 0 1.25rem; font-size: 1.25rem; font-weight: 620; line-height: 1.3; letter-spacing: -.012em; }
h2 { margin: 1.75rem 0 .5rem; padding-top: 1.5rem; font-size: 1rem; font-weight: 600; border-top: 1px solid var(--line); }
p { margin: 0 0 1rem; overflow-wrap: anywhere; }
a { color: var(--accent); text-underline-offset: 3px; }
a:hover { color: var(--strong); }
label { display: block; margin: 0 0 1rem; font-size: .8125rem; font-weight: 550; color: var(--quiet); }
input { display: block; width: 100%; height: 2.5rem; margin-top: .35rem; padding: 0 .75rem; font: inherit; font-size: .875rem; font-weight: 400; color: var(--text); background: var(--card); border: 1px solid var(--edge); border-radius: 8px; }
button, .button { display: flex; align-items: center; justify-content: center; width: 100%; min-height: 2.5rem; margin: 0 0 .75rem; padding: .3rem 1rem; font: inherit; font-weight: 550; text-align: center; text-decoration: none; overflow-wrap: anywhere; cursor: pointer; color: var(--text); background: var(--card); border: 1px solid var(--edge); border-radius: 8px; }
button:hover, .button:hover { background: var(--hover); color: var(--text); }
button.main { color: var(--on-accent); background: var(--accent); border-color: transparent; }
button.main:hover { color: var(--on-accent); background: var(--strong); }
button.small { width: auto; min-height: 1.75rem; margin: 0; padding: 0 .65rem; font-size: .8125rem; }
button:disabled { opacity: .55; cursor: default; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.problem { padding: .6rem .8rem; color: var(--problem); background: var(--problem-soft); border-radius: 8px; }
.quiet { color: var(--quiet); font-size: .8125rem; }
code, .code { font-family: ui-monospace, 'SF Mono', Menlo, 'DejaVu Sans Mono', monospace; font-size: .8125rem; }
.code { padding: .6rem .8rem; background: var(--sunken); border: 1px solid var(--line); border-radius: 8px; }
ul { margin: 0 0 1rem; padding: 0; list-style: none; }
li { display: flex; gap: 1rem; align-items: center; justify-content: space-between; padding: .6rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
li > :last-child { flex: none; }
li:has(> details[open]) { flex-wrap: wrap; }
li > details[open] { flex: 1 0 100%; }
summary { cursor: pointer; color: var(--quiet); font-size: .8125rem; }
li form + form { margin-top: .4rem; }
[hidden] { display: none; }
@media (width < 30rem) {
  body { padding-top: 2rem; }
  main { padding: 1.5rem 1.25rem 1rem; }
  input { height: 2.75rem; font-size: 1rem; }
  button, .button { min-height: 2.75rem; }
}
`;
