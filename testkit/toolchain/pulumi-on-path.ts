import { existsSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { CommandFailedError, findOnPath, report, runCommand } from './command.ts';

/** The oldest CLI with which the tests for the current CLI pass. */
const oldest = { major: 3, minor: 276 };

/**
 * Version 3.276 or a later 3.x, with the YAML host in the same directory. With HOLDFAST_TEST_PULUMI=build only the pinned version is used.
 */
export async function findFittingPulumi(): Promise<string | null> {
  if (process.env['HOLDFAST_TEST_PULUMI'] === 'build') return null;
  const found = await findOnPath('pulumi');
  if (found === null) return null;
  const file = await realpath(found);
  const reason = await reasonAgainst(file);
  if (reason === null) return file;
  report(`${found} is not used: ${reason}`);
  return null;
}

async function reasonAgainst(file: string): Promise<string | null> {
  if (!existsSync(join(dirname(file), 'pulumi-language-yaml')))
    return 'pulumi-language-yaml is not in the same directory';
  let version: string;
  try {
    version = (await runCommand(file, ['version'], { env: { PULUMI_SKIP_UPDATE_CHECK: 'true' } })).trim();
  } catch (error) {
    if (error instanceof CommandFailedError) return error.message;
    throw error;
  }
  const [, major, minor] = /^v?(\d+)\.(\d+)\.\d+$/.exec(version) ?? [];
  if (Number(major) === oldest.major && Number(minor) >= oldest.minor) return null;
  return `its version is ${version}, but the tests need a release from 3.276 on`;
}
