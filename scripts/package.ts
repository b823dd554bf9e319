import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { normalizeModes } from './package/folders.ts';
import { assertPrograms, buildLinuxRoot, packDebian, packForNpm, packRpm, packTarball } from './package/formats.ts';
import { buildTree, type Platform, platforms } from './package/platform.ts';
import { buildProgram, manifest } from './package/program.ts';

// `npm run package -- [--all] [--formats npm,tar,deb,rpm] [FOLDER]`: writes the packages of a release and their SHA256SUMS: the npm
// package and, for this platform or `--all`, a tarball, a Debian package and an RPM. The same commit yields the same bytes.

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    all: { type: 'boolean', default: false },
    fast: { type: 'boolean', default: false },
    formats: { type: 'string', default: 'npm,tar,deb,rpm' },
  },
});
const formats = values.formats.split(',');
const unknown = formats.filter((format) => !['npm', 'tar', 'deb', 'rpm'].includes(format));
if (unknown.length > 0) throw new Error(`unknown formats: ${unknown.join(', ')}`);
const own = `${process.platform}-${process.arch}`;
const chosen = platforms.filter(({ name }) => values.all || name === own);
if (chosen.some(({ debian }) => debian !== null)) assertPrograms(formats);
const folder = path.resolve(positionals[0] ?? 'packages');
mkdirSync(folder, { recursive: true });

const scratch = mkdtempSync(path.join(folder, '.building-'));
try {
  const program = path.join(scratch, 'program');
  await buildProgram(program);
  normalizeModes(program);
  const output = { folder, isFast: values.fast };
  if (formats.includes('npm')) packForNpm(program, output);
  if (formats.some((format) => format !== 'npm')) for (const platform of chosen) packFor(platform, program);
  writeSums();
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

function packFor(platform: Platform, program: string): void {
  const output = { folder, isFast: values.fast };
  const tree = path.join(scratch, `${manifest.name}-${manifest.version}-${platform.name}`);
  buildTree(program, platform, tree);
  normalizeModes(tree);
  if (formats.includes('tar')) packTarball(tree, platform, output);
  if (platform.debian === null) return;
  const linuxRoot = path.join(scratch, `${platform.name}-root`);
  buildLinuxRoot(tree, linuxRoot);
  if (formats.includes('deb')) packDebian(linuxRoot, platform, output);
  if (formats.includes('rpm')) packRpm(linuxRoot, platform, output);
}

function writeSums(): void {
  const names = readdirSync(folder).filter((name) => /\.(tgz|tar\.gz|deb|rpm)$/.test(name));
  const lines = names.sort().map((name) => {
    const hash = createHash('sha256')
      .update(readFileSync(path.join(folder, name)))
      .digest('hex');
    return `${hash}  ${name}\n`;
  });
  writeFileSync(path.join(folder, 'SHA256SUMS'), lines.join(''));
}
