import { readFileSync } from 'node:fs';
import { createRequire, registerHooks, stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = pathToFileURL(join(import.meta.dirname, '../../')).href;
const packages = `${root}node_modules/`;
/** Modules whose state test files restore. Most modules of the web UI have state for one page. */
const shared = new RegExp(`^${RegExp.escape(root)}src/(?!web/)(?!.*\\.test\\.ts$)`);
const parameter = '?file=';
const globalsUrl = 'jest:globals';
const globalsKey = Symbol.for('holdfast.test.globals');
const globalNames = [
  'afterAll',
  'afterEach',
  'beforeAll',
  'beforeEach',
  'describe',
  'expect',
  'it',
  'jest',
  'test',
].join(', ');

/** Code without types by path: modules that all test files share are read and stripped once. */
const stripped = new Map<string, string>();
let files = 0;

/** The imports of one test file from `@jest/globals`. */
export type TestGlobals = Readonly<Record<string, unknown>>;

/**
 * Imports modules for one test file. Its own modules, test support and test kit are loaded anew, so that they register their hooks and
 * begin with their initial state; packages and `src` (except for the web UI) are loaded once per process.
 */
export function createImporter(): (path: string, globals: TestGlobals) => Promise<unknown> {
  files += 1;
  const query = `${parameter}${files}`;
  return (path, globals) => {
    (globalThis as unknown as Record<symbol, TestGlobals>)[globalsKey] = globals;
    return import(pathToFileURL(path).href + query);
  };
}

function queryOf(url: string | undefined): string {
  const at = url?.lastIndexOf(parameter) ?? -1;
  return at < 0 ? '' : (url as string).slice(at);
}

function isOfProject(url: string): boolean {
  return url.startsWith(root) && !url.startsWith(packages);
}

function isOfTestFile(url: string): boolean {
  return isOfProject(url) && !shared.test(url);
}

function readStripped(url: string): string {
  const path = fileURLToPath(url);
  let code = stripped.get(path);
  if (code === undefined) {
    code = path.endsWith('.tsx') ? compileJsx(path) : stripTypes(path);
    stripped.set(path, code);
  }
  return code;
}

/** Lines and columns are kept. Stack traces contain the plain path. */
function stripTypes(path: string): string {
  return stripTypeScriptTypes(readFileSync(path, 'utf8'), { sourceUrl: path });
}

/** Components of the web UI. */
function compileJsx(path: string): string {
  const { transformSync } = createRequire(import.meta.url)('@swc/core') as typeof import('@swc/core');
  const { code } = transformSync(readFileSync(path, 'utf8'), {
    jsc: {
      target: 'es2024',
      parser: { syntax: 'typescript', tsx: true },
      transform: { react: { runtime: 'automatic' } },
    },
    module: { type: 'es6' },
    swcrc: false,
  });
  return `${code}\n//# sourceURL=${path}`;
}

registerHooks({
  resolve(specifier, context, nextResolve) {
    const query = queryOf(context.parentURL);
    if (query !== '' && specifier === '@jest/globals') return { url: globalsUrl + query, shortCircuit: true };
    const found = nextResolve(specifier, context);
    return query !== '' && isOfTestFile(found.url) ? { ...found, url: found.url + query } : found;
  },
  load(url, context, nextLoad) {
    if (url.startsWith(globalsUrl)) {
      const source = `export const { ${globalNames} } = globalThis[Symbol.for('${globalsKey.description}')];`;
      return { format: 'module', source, shortCircuit: true };
    }
    // Class names of components.
    if (/\.module\.css(\?|$)/.test(url)) return { format: 'module', source: 'export default {};', shortCircuit: true };
    if (!isOfProject(url) || !/\.tsx?$/.test(url.replace(/\?.*$/, ''))) return nextLoad(url, context);
    return { format: 'module', source: readStripped(url), shortCircuit: true };
  },
});
