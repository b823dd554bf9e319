import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

const root = path.join(import.meta.dirname, '../..');
const parts = [
  ...['bin', 'deploy/linux', 'docs', 'migrations', 'scripts', 'src', 'testkit/bundles'],
  ...['package.json', 'package-lock.json', '.npmrc', 'LICENSE', 'README.md', 'SECURITY.md'],
  ...['tsconfig.json', 'tsconfig.build.json', 'vite.config.ts'],
];

/** The packages of this checkout, built for tests. */
export interface BuiltPackages extends Disposable {
  readonly folder: string;
  readonly npm: string;
  readonly tarball: string;
  readonly deb: string;
  readonly rpm: string;
  /** Hash of each file, by its name. */
  readonly hashes: Readonly<Record<string, string>>;
}

/**
 * Copies the checkout, and builds all packages of this platform there, with least compression. `withWeb` also copies the web UI, if the
 * checkout has it; it is built again only if its sources have changed.
 */
export async function buildPackages({ withWeb = false } = {}): Promise<BuiltPackages> {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-packages-'));
  const checkout = path.join(folder, 'checkout');
  mkdirSync(checkout);
  for (const part of parts) cpSync(path.join(root, part), path.join(checkout, part), { recursive: true });
  const web = path.join(root, 'dist/web');
  if (withWeb && existsSync(web)) cpSync(web, path.join(checkout, 'dist/web'), { recursive: true });
  symlinkSync(path.join(root, 'node_modules'), path.join(checkout, 'node_modules'));
  await promisify(execFile)(process.execPath, ['scripts/package.ts', '--fast', path.join(folder, 'out')], {
    cwd: checkout,
    maxBuffer: 16 * 1024 * 1024,
  });
  const out = path.join(folder, 'out');
  const names = readdirSync(out);
  const fileOf = (end: string): string => {
    const [name, ...others] = names.filter((each) => each.endsWith(end));
    if (name === undefined || others.length > 0) throw new Error(`there is not one *${end} in ${names.join(', ')}`);
    return path.join(out, name);
  };
  return {
    folder: out,
    npm: fileOf('.tgz'),
    tarball: fileOf('.tar.gz'),
    deb: fileOf('.deb'),
    rpm: fileOf('.rpm'),
    hashes: Object.fromEntries(
      names.map((name) => [
        name,
        createHash('sha256')
          .update(readFileSync(path.join(out, name)))
          .digest('hex'),
      ]),
    ),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
