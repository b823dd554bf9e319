/** Style sheet of the pages for people. */
export const signInStyle = `:root {
  color-scheme: light dark;
  --text: #1c2330; --quiet: #5b6475; --page: #f4f6f9; --card: #fff; --line: #d3d9e3; --accent: #2454c6; --on-accent: #fff; --problem: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --text: #e4e8f0; --quiet: #a3adbd; --page: #0f1218; --card: #171c25; --line: #333b49; --accent: #8ab0ff; --on-accent: #0f1218; --problem: #ff9a90;
  }
}
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; padding: 3rem 1rem; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
header, main { max-width: 26rem; margin: 0 auto; }
main.wide { max-width: 46rem; }
.brand { font-weight: 700; letter-spacing: .02em; color: var(--quiet); }
main { margin-top: 1rem; padding: 1.75rem; background: var(--card); border: 1px solid var(--line); border-radius: .75rem; }
h1 { margin: 0 0 1rem; font-size: 1.4rem; line-height: 1.25; }
h2 { margin: 2rem 0 .5rem; font-size: 1.05rem; }
p { margin: 0 0 1rem; overflow-wrap: anywhere; }
a { color: var(--accent); }
label { display: block; margin: 0 0 1rem; font-weight: 600; }
input { display: block; width: 100%; margin-top: .25rem; padding: .6rem .7rem; font: inherit; color: inherit; background: var(--page); border: 1px solid var(--line); border-radius: .4rem; }
button, .button { display: block; width: 100%; margin: 0 0 .75rem; padding: .65rem 1rem; font: inherit; font-weight: 600; text-align: center; text-decoration: none; cursor: pointer; color: var(--accent); background: transparent; border: 1px solid var(--line); border-radius: .4rem; }
button.main { color: var(--on-accent); background: var(--accent); border-color: var(--accent); }
button.small { display: inline-block; width: auto; margin: 0; padding: .25rem .6rem; font-size: .9rem; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.problem { padding: .6rem .8rem; color: var(--problem); border: 1px solid currentcolor; border-radius: .4rem; }
.quiet { color: var(--quiet); font-size: .92rem; }
.code { padding: .6rem .8rem; font-family: ui-monospace, monospace; font-size: .92rem; background: var(--page); border-radius: .4rem; }
ul { margin: 0 0 1rem; padding: 0; list-style: none; }
li { display: flex; gap: 1rem; align-items: center; justify-content: space-between; padding: .6rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
[hidden] { display: none; }
`;
