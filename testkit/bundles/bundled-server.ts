import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bundleDir, listSources, root } from './bundle-dir.ts';
import { buildBundle } from './node-bundle.ts';

/** Bundled processes need less than half of the CPU time to start. Returns the program to run with Node, in place of `bin/holdfast.js`. */
export async function bundleServer(): Promise<string> {
  const sources = await listSources(join(root, 'src'));
  const texts = await Promise.all(sources.map((file) => readFile(file)));
  return join(await bundleDir('server', [...sources, ...texts], (dir) => bundleServerInto(dir, root)), 'holdfast.mjs');
}

/** The server finds its migrations beside the package.json above that directory. */
export async function bundleServerInto(dir: string, checkout: string): Promise<void> {
  const entryPoints = {
    main: join(checkout, 'src/main.ts'),
    // The runner expects the thread next to its own file.
    'replay-thread': join(checkout, 'src/shared/state/journal/replay/runner/replay-thread.ts'),
  };
  await buildBundle(checkout, entryPoints, dir);
  const launcher = [
    "import { enableCompileCache } from 'node:module';",
    "import { join } from 'node:path';",
    "enableCompileCache(join(import.meta.dirname, 'compiled'));",
    "await import('./main.mjs');",
  ];
  await writeFile(join(dir, 'holdfast.mjs'), `${launcher.join('\n')}\n`);
}
