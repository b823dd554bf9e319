import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';

// `npm run package [-- FOLDER]`: builds a release as holdfast-<version>.tgz with compiled sources, web UI, migrations and the
// SBOM. npm pack sorts the files and gives all of them the same time, so the same commit yields the same bytes.

const root = path.join(import.meta.dirname, '..');
const destination = path.resolve(process.argv[2] ?? '.');

function run(program: string, args: readonly string[]): void {
  const { status } = spawnSync(program, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) process.exit(status ?? 1);
}

// Otherwise files of an earlier build would be packed, too.
rmSync(path.join(root, 'dist'), { recursive: true, force: true });
mkdirSync(destination, { recursive: true });
run('npm', ['run', '--silent', 'build']);
run('npm', ['run', '--silent', 'build:web']);
run(process.execPath, ['scripts/sbom.ts', path.join(root, 'sbom.cdx.json')]);
run('npm', ['pack', '--silent', '--pack-destination', destination]);
