import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

// `npm run release-files -- FOLDER --docs URL holdfast=IMAGE holdfast-web=IMAGE holdfast-s3=IMAGE`: writes the files of a release
// that name images or documents. FOLDER/compose gets docker-compose.yml, which builds nothing, and the files that it mounts;
// FOLDER/alerts.yml has whole addresses of the runbook. All images must have a digest.

const root = path.join(import.meta.dirname, '..');
const { values, positionals } = parseArgs({ allowPositionals: true, options: { docs: { type: 'string' } } });
const [folder, ...given] = positionals;
const images = new Map(given.map((pair) => pair.split('=', 2) as [string, string]));

function fail(message: string): never {
  console.error(`release-files: ${message}`);
  process.exit(1);
}

const read = (name: string): string => readFileSync(path.join(root, name), 'utf8');

/** The compose file with images of the release in place of built images. */
function composeOfRelease(): string {
  const built = /^( +)image: ([\w-]+):\$\{IMAGE_TAG:-local\}\n\1build: .*$/gm;
  const text = read('docker-compose.yml').replaceAll(built, (_, indent: string, name: string) => {
    const image = images.get(name) ?? fail(`no image is given for ${name}`);
    return `${indent}image: ${image}`;
  });
  if (/^ +build:/m.test(text)) fail('docker-compose.yml has another way to build an image');
  const unpinned = [...text.matchAll(/^ +image: (\S+)$/gm)].flatMap(([, image = '']) =>
    /@sha256:[0-9a-f]{64}$/.test(image) ? [] : [image],
  );
  if (unpinned.length > 0) fail(`no digest: ${unpinned.join(', ')}`);
  return text;
}

if (!folder || !values.docs) fail('a folder and --docs are needed');
const docs = values.docs.replace(/\/$/, '');
const compose = path.join(folder, 'compose');
const text = composeOfRelease();
mkdirSync(compose, { recursive: true });
writeFileSync(path.join(compose, 'docker-compose.yml'), text);
for (const name of ['.env.example', 'deploy/proxy/Caddyfile', 'deploy/redis/start.sh'])
  cpSync(path.join(root, name), path.join(compose, name), { recursive: true });
const alerts = read('deploy/monitoring/alerts.yml').replaceAll('runbook_url: docs/', `runbook_url: ${docs}/docs/`);
writeFileSync(path.join(folder, 'alerts.yml'), alerts);
const dashboards = path.join(root, 'deploy/monitoring/dashboards');
for (const name of readdirSync(dashboards)) cpSync(path.join(dashboards, name), path.join(folder, `grafana-${name}`));
