import { CommandFailedError, report, ToolUnavailableError } from './command.ts';
import {
  buildLossyDisk,
  buildMinio,
  buildPulumi,
  buildSchemathesis,
  buildTestProvider,
  buildVersitygw,
} from './recipes.ts';
import { ensureSystemProgram } from './system-package.ts';

const providers = {
  'test-provider': buildTestProvider,
  'pulumi-3.255': () => buildPulumi('3.255'),
  'pulumi-3.200': () => buildPulumi('3.200'),
  versitygw: buildVersitygw,
  'lossy-disk': buildLossyDisk,
  minio: buildMinio,
  'redis-server': () => ensureSystemProgram(['redis-server'], 'redis-server'),
  faketime: () => ensureSystemProgram(['faketime'], 'faketime'),
  caddy: () => ensureSystemProgram(['caddy'], 'caddy'),
  schemathesis: buildSchemathesis,
  chromium: () => ensureSystemProgram(['chromium', 'chromium-browser', 'google-chrome'], 'chromium'),
} satisfies Record<string, () => Promise<string>>;

/** A tool that the tests can ask for. */
export type ToolName = keyof typeof providers;

/** The absolute path of each tool's executable. */
export type Toolchain<Name extends ToolName = ToolName> = Record<Name, string>;

/** Every tool except the browser, which is large and wanted by few. */
export const defaultTools = (Object.keys(providers) as ToolName[]).filter((name) => name !== 'chromium');

/**
 * Makes sure that tools are on this machine and returns their paths. What is lacking is built into the cache, which
 * takes minutes the first time and milliseconds afterwards. Throws ToolUnavailableError when a tool cannot be had.
 */
export async function ensureToolchain<Name extends ToolName>(options: {
  only: readonly Name[];
}): Promise<Toolchain<Name>>;
export async function ensureToolchain(): Promise<Toolchain<Exclude<ToolName, 'chromium'>>>;
export async function ensureToolchain(options?: { only: readonly ToolName[] }): Promise<Partial<Toolchain>> {
  const paths: Partial<Toolchain> = {};
  // One after the other: each build uses all processors by itself.
  for (const name of new Set(options?.only ?? defaultTools)) paths[name] = await providers[name]();
  return paths;
}

function isToolName(name: string): name is ToolName {
  return Object.hasOwn(providers, name);
}

async function main(names: readonly string[]): Promise<number> {
  const unknown = names.filter((name) => !isToolName(name));
  if (unknown.length > 0) {
    report(`no such tool: ${unknown.join(', ')}; known: ${Object.keys(providers).join(', ')}`);
    return 2;
  }
  try {
    const tools = await ensureToolchain({ only: names.length === 0 ? defaultTools : names.filter(isToolName) });
    process.stdout.write(`${JSON.stringify(tools, null, 2)}\n`);
    return 0;
  } catch (error) {
    if (!(error instanceof ToolUnavailableError || error instanceof CommandFailedError)) throw error;
    report(error.message);
    return 1;
  }
}

// Without top-level await: Jest's set-up of a run loads this by `require`.
if (import.meta.main)
  void main(process.argv.slice(2)).then((code) => {
    process.exitCode = code;
  });
