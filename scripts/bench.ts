import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

// `npm run bench NAME [-- OPTIONS]`: runs the benchmark bench/NAME.ts, whose comment describes its options. Without a name, lists
// the benchmarks by the first lines of their comments.

const folder = path.join(import.meta.dirname, '../bench');
const names = readdirSync(folder).flatMap((file) => (file.endsWith('.ts') ? [file.slice(0, -3)] : []));
const [name] = process.argv.splice(2, 1);

function listNames(): string {
  const width = Math.max(...names.map((each) => each.length));
  const lines = names.toSorted().map((each) => {
    const [, line = ''] = /\/\*\*\n \* (.*)/.exec(readFileSync(path.join(folder, `${each}.ts`), 'utf8')) ?? [];
    return `  ${each.padEnd(width)}  ${line}`;
  });
  return ['npm run bench NAME [-- OPTIONS]', '', ...lines].join('\n');
}

if (name === undefined) console.log(listNames());
else if (names.includes(name)) await import(pathToFileURL(path.join(folder, `${name}.ts`)).href);
else {
  console.error(`There is no benchmark "${name}".\n\n${listNames()}`);
  process.exitCode = 2;
}
