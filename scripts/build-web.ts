import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { glob, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { brotliCompressSync, gzipSync, constants as zlib } from 'node:zlib';
import { webBuildFolder } from '../src/api/platform/http/web-build.ts';

// `npm run build:web`: builds the web UI into dist/web, with each file compressed beside itself. `--if-stale` builds only if
// sources or packages have changed since, with low priority; `npm start` does that while the server already runs.

const root = path.join(import.meta.dirname, '..');
const target = path.join(root, 'dist', 'web');
/** Says from what the build was made. Not served: the server only knows names of pages and assets. */
const stampName = '.sources';
/** Smaller files fit into one packet as they are. */
const minCompressedBytes = 1024;
const compressible = new Set(['.css', '.html', '.js', '.json', '.svg']);

const { values } = parseArgs({ options: { 'if-stale': { type: 'boolean' } } });
if (values['if-stale']) await buildIfStale();
else await build();

async function buildIfStale(): Promise<void> {
  os.setPriority(10);
  // Without the packages for development, there is nothing to build with.
  if (!existsSync(path.join(root, 'node_modules', 'vite')) || !existsSync(path.join(root, 'src', 'web'))) return;
  if ((await readFile(path.join(target, stampName), 'utf8').catch(() => '')) !== (await hashSources())) await build();
}

/** Builds in a folder of its own, which then replaces the former build: no page refers to files that are not there. */
async function build(): Promise<void> {
  // Otherwise that of tests would choose React's larger build for development.
  process.env['NODE_ENV'] = 'production';
  const folder = webBuildFolder(target, process.pid);
  await rm(folder, { recursive: true, force: true });
  // First: a server that runs sees it, and says that the web UI is being built.
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

/** Sources as they are, packages by their lock file, and what the API contributes: its types only, so nothing. */
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
