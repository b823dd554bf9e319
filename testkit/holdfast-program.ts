import { join, resolve } from 'node:path';

/**
 * For Node: the bundle that Jest has built from the sources (HOLDFAST_TEST_PROGRAM), or, outside Jest, `bin/holdfast.js`, which runs the
 * sources.
 */
export const holdfastProgram = resolve(
  join(import.meta.dirname, '..'),
  process.env['HOLDFAST_TEST_PROGRAM'] ?? 'bin/holdfast.js',
);
