import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

import { CommandFailedError, findOnPath, runCommand, ToolUnavailableError } from './command.ts';
import { prepareStandIns, type StandIns, standInInputs } from './go-stand-ins.ts';
import type { CachedBuild } from './tool-cache.ts';

/** Our Go modules, which pin the sources of the tools. */
export const goModules = join(import.meta.dirname, 'go');
const goEnv = { CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '' };
/** The compiler collects no garbage below this limit: most packages are compiled before. */
const goMemory = { GOGC: 'off', GOMEMLIMIT: '1GiB' };
/** Without debug information, which `-s -w` would drop anyway. */
const compilerFlags = ['-gcflags=all=-dwarf=false'];
/** Without inlining, except in Go's own packages, which all tools share: packages compile a sixth faster. */
const seldomRunFlags = ['-gcflags=all=-dwarf=false -l', '-gcflags=std=-dwarf=false'];

/** A program in Go. */
export interface GoBuild {
  label: string;
  typicalSeconds: number;
  /** Directory with the go.mod and go.sum that pin everything, relative to go/. */
  module: string;
  packagePath: string;
  /** Further packages that are built with it. */
  morePackages?: readonly string[];
  /** The program starts only a few times in a run of all tests, unlike the CLI and its plugins, which start a thousand times. */
  isSeldomRun?: true;
  ldflags?: string;
  extraInputs?: readonly string[];
  standIns?: StandIns;
  finish?: (binDir: string) => Promise<void>;
}

/** `module` may be the path of any directory. */
export async function goBuild(recipe: GoBuild): Promise<CachedBuild> {
  const { label, typicalSeconds, standIns } = recipe;
  const compiling = recipe.isSeldomRun ? seldomRunFlags : compilerFlags;
  const packages = [recipe.packagePath, ...(recipe.morePackages ?? [])];
  const moduleDir = resolve(goModules, recipe.module);
  const names = (await readdir(moduleDir)).sort();
  const files = await Promise.all(names.map((name) => readFile(join(moduleDir, name))));
  const ldflags = `-s -w ${recipe.ldflags ?? ''}`.trim();
  const replaced = standIns === undefined ? [] : await standInInputs(standIns);
  const inputs = [...packages, ldflags, ...compiling, ...(recipe.extraInputs ?? []), ...names, ...files, ...replaced];

  /** Runs a Go command in the module's directory, with the flags that select the modules. */
  const runGo = async (command: string, args: readonly string[]): Promise<void> => {
    const go = await findOnPath('go', ['/usr/local/go/bin']);
    if (go === null) {
      throw new ToolUnavailableError(`${label} is built with Go: install Go 1.26.6 or newer and put it on PATH.`);
    }
    const scratch = await mkdtemp(join(tmpdir(), 'holdfast-go-'));
    try {
      const flags = standIns === undefined ? [] : await prepareStandIns(go, goEnv, moduleDir, standIns, scratch);
      await runCommand(go, [command, '-mod=readonly', ...flags, ...args], {
        cwd: moduleDir,
        env: { ...goEnv, ...goMemory },
      });
    } catch (error) {
      if (error instanceof CommandFailedError && error.message.includes('requires go >=')) {
        throw new ToolUnavailableError(`${label} needs a newer Go: install Go 1.26.6 or newer.`, { cause: error });
      }
      throw error;
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  };
  return {
    label,
    typicalSeconds,
    inputs,
    // Only the compiled modules: `go mod download` would fetch the modules of all platforms and tests.
    download: () => runGo('list', ['-deps', ...packages]),
    build: async (dir) => {
      const binDir = join(dir, 'bin');
      await mkdir(binDir);
      const flags = ['-buildvcs=false', '-trimpath', ...compiling, '-ldflags', ldflags];
      await runGo('build', [...flags, '-o', `${binDir}/`, ...packages]);
      await recipe.finish?.(binDir);
    },
  };
}
