import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { installLanguageHost } from './language-host/install.ts';
import type { PulumiWorkspace } from './pulumi-cli.ts';

/** Allows no resources of a type. */
export interface PackRules {
  readonly name: string;
  readonly version: string;
  readonly forbiddenType: string;
}

/** Writes a policy pack for our own language host, and installs the host in the workspace. Returns the pack's directory. */
export async function writePolicyPack(workspace: PulumiWorkspace, rules: PackRules): Promise<string> {
  await installLanguageHost(workspace);
  const directory = join(workspace.dir, `${rules.name}-${rules.version}`);
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'PulumiPolicy.yaml'), `runtime: holdfast\nversion: ${rules.version}\n`);
  await writeFile(join(directory, 'policy.json'), JSON.stringify({ ...rules, policy: `${rules.name}-rule` }));
  return directory;
}
