import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Settings, secretSettings } from '../src/shared/platform/config/settings.ts';

// `npm run settings` writes the settings into the README's table and into .env.example; with `--check` it only says
// whether they are up to date.

const root = path.join(import.meta.dirname, '..');
const tableStart = '<!-- settings: made by `npm run settings` -->';
const tableEnd = '<!-- /settings -->';
const lineWidth = 100;

/** What docker-compose.yml cannot do without. */
const composeVariables = [
  ['POSTGRES_PASSWORD', 'Password of the database that compose runs. Letters and digits: it becomes part of a URL.'],
  ['S3_ACCESS_KEY', 'Key id of the S3 server that compose runs.'],
  ['S3_SECRET_KEY', 'Secret key of the S3 server that compose runs.'],
  [
    'REDIS_PASSWORD',
    'Password of the Redis that compose runs for a cluster. Letters and digits: it becomes part of a URL.',
  ],
  [
    'HOLDFAST_MASTER_KEYS',
    'Key ring as described in the README, e.g. k1: and the output of `openssl rand -base64 32`. Secrets in states cannot be read without it: keep a copy elsewhere.',
  ],
] as const;

interface Setting {
  readonly name: string;
  readonly description: string;
  readonly default: string | null;
  readonly secret: boolean;
}

const settings: readonly Setting[] = Object.entries(Settings.properties).map(([name, schema]) => {
  const { description, default: value } = schema as { description?: string; default?: unknown };
  if (description === undefined) throw new Error(`${name} has no description`);
  const secret = (secretSettings as readonly string[]).includes(name);
  return { name, description, default: value === undefined ? null : String(value), secret };
});

function renderTable(): string {
  const rows = settings.map(({ name, description, default: value }) => {
    const cells = [`\`${name}\``, value === null ? '' : `\`${value}\``, description];
    return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  });
  return ['| Variable | Default | Meaning |', '| --- | --- | --- |', ...rows].join('\n');
}

function renderExample(): string {
  const asked = new Set<string>(composeVariables.map(([name]) => name));
  const others = settings.filter(({ name }) => !asked.has(name));
  const own = others.map(({ name, description, default: value, secret }) =>
    [...wrapped(secret ? `${description} Secret.` : description), `#${name}=${value ?? ''}`].join('\n'),
  );
  const compose = composeVariables.map(([name, description]) => [...wrapped(description), `${name}=`].join('\n'));
  return [
    ['# Made by `npm run settings`. Copy it to .env, which is never committed.'],
    ['# ---- Needed by docker-compose.yml ----', ...compose],
    ['# ---- Settings of Holdfast; in comments: the defaults ----', ...own],
  ]
    .flat()
    .join('\n\n')
    .concat('\n');
}

function wrapped(text: string): string[] {
  const lines: string[] = [];
  let line = '#';
  for (const word of text.split(' ')) {
    if (line.length + 1 + word.length > lineWidth) {
      lines.push(line);
      line = '#';
    }
    line += ` ${word}`;
  }
  return [...lines, line];
}

function withTable(readme: string): string {
  const start = readme.indexOf(tableStart);
  const end = readme.indexOf(tableEnd);
  if (start < 0 || end < start) throw new Error(`README.md lacks the marks ${tableStart} and ${tableEnd}`);
  return `${readme.slice(0, start + tableStart.length)}\n\n${renderTable()}\n\n${readme.slice(end)}`;
}

function read(name: string): string {
  const file = path.join(root, name);
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

const wanted = { 'README.md': withTable(read('README.md')), '.env.example': renderExample() };
const check = process.argv.includes('--check');
for (const [name, text] of Object.entries(wanted)) {
  if (read(name) === text) continue;
  if (check) {
    console.error(`${name} does not match the settings; run: npm run settings`);
    process.exitCode = 1;
  } else {
    writeFileSync(path.join(root, name), text);
    console.log(`wrote ${name}`);
  }
}
