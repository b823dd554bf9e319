import { existsSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { buildBundle } from '../../testkit/bundles/node-bundle.ts';
import { place, put, root, run } from './folders.ts';
import { noticesOf } from './notices.ts';

/** The parts of package.json that packages repeat. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

/** package.json of the checkout. */
export const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as Manifest;

/**
 * Builds the common content of all packages into a new folder: the bundled server, which the tests run, too, the web UI, migrations,
 * licenses and the SBOM. Its package.json has no dependencies other than programs for one platform.
 */
export async function buildProgram(folder: string): Promise<void> {
  const entryPoints = {
    main: path.join(root, 'src/main.ts'),
    'replay-thread': path.join(root, 'src/shared/state/journal/replay/runner/replay-thread.ts'),
  };
  // Not minified, because stack traces refer to its lines.
  const inputs = await buildBundle(root, entryPoints, path.join(folder, 'dist'), {
    minifyWhitespace: false,
    minifySyntax: false,
    outExtension: {},
  });
  run(process.execPath, ['scripts/build-web.ts', '--if-stale']);
  const web = path.join(folder, 'dist', 'web');
  place(path.join(root, 'dist', 'web'), web);
  const webNotices = path.join(web, 'licenses.md');
  put(
    path.join(folder, 'THIRD-PARTY-NOTICES.md'),
    `# Packages in the server\n\n${noticesOf(inputs)}\n${readFileSync(webNotices, 'utf8')}`,
  );
  rmSync(webNotices);
  for (const name of ['migrations', 'bin', 'LICENSE', 'README.md', 'SECURITY.md'])
    place(path.join(root, name), path.join(folder, name));
  run(process.execPath, ['scripts/sbom.ts', path.join(folder, 'sbom.cdx.json')]);
  const { description, license, name, optionalDependencies, version } = manifest;
  const published = {
    ...{ name, version, description, license, type: 'module', engines: { node: '>=20' } },
    bin: { holdfast: 'bin/holdfast.js' },
    optionalDependencies,
  };
  put(path.join(folder, 'package.json'), `${JSON.stringify(published, null, 2)}\n`);
  if (!existsSync(path.join(web, 'index.html'))) throw new Error('the web UI was not built');
}
