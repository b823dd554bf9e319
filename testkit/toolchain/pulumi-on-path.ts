import { existsSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { CommandFailedError, findOnPath, report, runCommand } from './command.ts';

/** The oldest CLI that can run the tests of the current one. */
const oldest = { major: 3, minor: 255 };

/**
 * The CLI on PATH if it can take the place of the one that would be built: of version 3.255 or a later 3.x, with the YAML host
 * beside it. HOLDFAST_TEST_PULUMI=build wants none but the pinned one.
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
  if (!existsSync(join(dirname(file), 'pulumi-language-yaml'))) return 'pulumi-language-yaml is not beside it';
  let version: string;
  try {
    version = (await runCommand(file, ['version'], { env: { PULUMI_SKIP_UPDATE_CHECK: 'true' } })).trim();
  } catch (error) {
    if (error instanceof CommandFailedError) return error.message;
    throw error;
  }
  const [, major, minor] = /^v?(\d+)\.(\d+)\.\d+$/.exec(version) ?? [];
  if (Number(major) === oldest.major && Number(minor) >= oldest.minor) return null;
  return `its version is ${version}, and the tests are for releases of 3.255 or later`;
}
