import { join, resolve } from 'node:path';

/**
 * The program that Node runs for a Holdfast process: the bundle that Jest has built from the sources (HOLDFAST_TEST_PROGRAM), or, outside
 * Jest, `bin/holdfast.js`, which runs the sources.
 */
export const holdfastProgram = resolve(
  join(import.meta.dirname, '..'),
  process.env['HOLDFAST_TEST_PROGRAM'] ?? 'bin/holdfast.js',
);
