import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { glob, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { brotliCompressSync, gzipSync, constants as zlib } from 'node:zlib';
import { webBuildFolder } from '../src/api/platform/http/web-build.ts';

// `npm run build:web`: builds the web UI into dist/web, with a compressed file beside each file. `--if-stale` builds with low priority, and
// only if sources or packages have changed since; `npm start` does that while the server is already running.

const root = path.join(import.meta.dirname, '..');
const target = path.join(root, 'dist', 'web');
/** A file with the hash of the build's sources. Not served, because the server knows only names of pages and assets. */
const stampName = '.sources';
/** A smaller file fits into one packet uncompressed. */
const minCompressedBytes = 1024;
const compressible = new Set(['.css', '.html', '.js', '.json', '.svg']);

const { values } = parseArgs({ options: { 'if-stale': { type: 'boolean' } } });
if (values['if-stale']) await buildIfStale();
else await build();

async function buildIfStale(): Promise<void> {
  os.setPriority(10);
  // The build needs the development packages.
  if (!existsSync(path.join(root, 'node_modules', 'vite')) || !existsSync(path.join(root, 'src', 'web'))) return;
  if ((await readFile(path.join(target, stampName), 'utf8').catch(() => '')) !== (await hashSources())) await build();
}

/** Builds in a separate folder, which then replaces the former build, so that no page refers to missing files. */
async function build(): Promise<void> {
  // With the value of tests, the build would contain React's larger development version.
  process.env['NODE_ENV'] = 'production';
  const folder = webBuildFolder(target, process.pid);
  await rm(folder, { recursive: true, force: true });
  // Created first: a running server sees the folder, and says that the web UI is being built.
  await mkdir(folder, { recursive: true });
  try {
    const { build: bundle } = await import('vite');
    const stamp = await hashSources();
    await bundle({ configFile: path.join(root, 'vite.config.ts'), logLevel: 'warn', build: { outDir: folder } });
    await compressFiles(folder);
    await writeFile(path.join(folder, stampName), stamp);
    await replace(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Another process may do the same at this moment, so either rename can fail. */
async function replace(folder: string): Promise<void> {
  const former = `${folder}-former`;
  await mkdir(path.dirname(target), { recursive: true });
  for (let attempt = 1; ; attempt++) {
    await rename(target, former).catch(unless('ENOENT'));
    const isInPlace = await rename(folder, target).then(() => true, unless('ENOTEMPTY', 'EEXIST'));
    await rm(former, { recursive: true, force: true });
    if (isInPlace) return;
    if (attempt === 10) throw new Error(`${target} is replaced by others all the time`);
  }
}

/** Ignores errors with these codes. */
function unless(...codes: readonly string[]): (error: NodeJS.ErrnoException) => false {
  return (error) => {
    if (codes.includes(error.code ?? '')) return false;
    throw error;
  };
}

async function compressFiles(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !compressible.has(path.extname(entry.name))) continue;
    const file = path.join(entry.parentPath, entry.name);
    const bytes = await readFile(file);
    if (bytes.length < minCompressedBytes) continue;
    const params = { [zlib.BROTLI_PARAM_QUALITY]: 11, [zlib.BROTLI_PARAM_SIZE_HINT]: bytes.length };
    await writeFile(`${file}.br`, brotliCompressSync(bytes, { params }));
    await writeFile(`${file}.gz`, gzipSync(bytes, { level: 9 }));
  }
}

/** Hashes the sources and the lock file of the packages. The API contributes only types, so it does not count. */
async function hashSources(): Promise<string> {
  const hash = createHash('sha256');
  const inputs = ['package-lock.json', 'scripts/build-web.ts', 'vite.config.ts'];
  for await (const file of glob('src/web/**/*', { cwd: root })) if (!file.endsWith('.test.ts')) inputs.push(file);
  for (const file of inputs.sort()) {
    if (!(await stat(path.join(root, file))).isFile()) continue;
    hash.update(`${file}\0`).update(await readFile(path.join(root, file)));
  }
  return hash.digest('hex');
}
