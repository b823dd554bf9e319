import { chmod, link, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';

import { CommandFailedError, findOnPath, runCommand, ToolUnavailableError } from './command.ts';
import { type CachedBuild, ensureBuilt } from './tool-cache.ts';

const goModules = join(import.meta.dirname, 'go');
/** Source of the S3 server that the compose file builds and runs. */
const shippedS3Server = join(import.meta.dirname, '../../deploy/s3');

/** The version that Pulumi's CLI reports; its go.mod in go/pulumi-<minor> must require the same. */
const pulumiVersions = { '3.255': '3.255.0', '3.200': '3.200.0' } as const;
const schemathesisVersion = '4.32.5';

/** Versions of the Pulumi CLI that are built, by minor version. */
export type PulumiVersion = keyof typeof pulumiVersions;

/** Builds a CLI with the YAML language host beside it; returns the path of `pulumi`, whose directory fits on PATH. */
export async function buildPulumi(version: PulumiVersion): Promise<string> {
  const full = pulumiVersions[version];
  const yamlHost = await buildYamlHost();
  const recipe = await goBuild({
    label: `pulumi-${full}`,
    module: `pulumi-${version}`,
    packagePath: 'github.com/pulumi/pulumi/pkg/v3/cmd/pulumi',
    ldflags: `-X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v${full}`,
    extraInputs: [basename(dirname(dirname(yamlHost)))],
    finish: (bin) => link(yamlHost, join(bin, 'pulumi-language-yaml')),
  });
  const dir = await ensureBuilt(recipe);
  return join(dir, 'bin', 'pulumi');
}

/** v1.38.0 also serves the older CLI; only the `pulumi:index:Stash` resource is missing there, for want of an engine. */
async function buildYamlHost(): Promise<string> {
  const dir = await ensureBuilt(
    await goBuild({
      label: 'pulumi-language-yaml-1.38.0',
      module: 'pulumi-3.255',
      packagePath: 'github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml',
    }),
  );
  return join(dir, 'bin', 'pulumi-language-yaml');
}

/** Builds our own resource plugin, `pulumi-resource-holdfast`. */
export async function buildTestProvider(): Promise<string> {
  const dir = await ensureBuilt(
    await goBuild({ label: 'pulumi-resource-holdfast-1.0.0', module: 'test-provider', packagePath: '.' }),
  );
  return join(dir, 'bin', 'pulumi-resource-holdfast');
}

/** Builds MinIO at the version that its go.mod pins. For tests only: it stays in the cache and is never shipped. */
export async function buildMinio(): Promise<string> {
  const dir = await ensureBuilt(
    await goBuild({ label: 'minio', module: 'minio', packagePath: 'github.com/minio/minio' }),
  );
  return join(dir, 'bin', 'minio');
}

/** Builds the S3 server that the compose file runs: versitygw with a store that syncs. */
export async function buildVersitygw(): Promise<string> {
  const dir = await ensureBuilt(
    await goBuild({ label: 'versitygw-synced', module: shippedS3Server, packagePath: '.' }),
  );
  return join(dir, 'bin', 'versitygw-synced');
}

/** Builds our own file system for tests, `lossy-disk`, which loses what was not synced. */
export async function buildLossyDisk(): Promise<string> {
  const dir = await ensureBuilt(await goBuild({ label: 'lossy-disk', module: 'lossy-disk', packagePath: '.' }));
  return join(dir, 'bin', 'lossy-disk');
}

/** Installs schemathesis into a Python environment of its own; returns an executable that takes its arguments. */
export async function buildSchemathesis(): Promise<string> {
  const dir = await ensureBuilt({
    label: `schemathesis-${schemathesisVersion}`,
    inputs: [schemathesisVersion, 'venv-2'],
    build: buildVenv,
  });
  return join(dir, 'bin', 'schemathesis-run');
}

async function buildVenv(dir: string): Promise<void> {
  const python = await findOnPath('python3');
  if (python === null) throw new ToolUnavailableError('schemathesis needs Python 3: install python3 and python3-venv.');
  try {
    await runCommand(python, ['-m', 'venv', dir]);
  } catch (error) {
    throw new ToolUnavailableError('schemathesis needs Python’s venv module: install python3-venv.', { cause: error });
  }
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
  await runCommand(join(dir, 'bin', 'python'), [...pip, `schemathesis==${schemathesisVersion}`]);
  // pip's own scripts name the directory they were installed in, and this one is renamed when it is complete.
  const wrapper = join(dir, 'bin', 'schemathesis-run');
  const call = 'import sys; sys.argv[0] = "schemathesis"; from schemathesis.cli import schemathesis; schemathesis()';
  await writeFile(wrapper, `#!/bin/sh\nexec "$(dirname "$0")/python" -c '${call}' "$@"\n`);
  await chmod(wrapper, 0o755);
}

interface GoBuild {
  label: string;
  /** Directory whose go.mod and go.sum pin everything; relative to go/. */
  module: string;
  packagePath: string;
  ldflags?: string;
  extraInputs?: readonly string[];
  finish?: (binDir: string) => Promise<void>;
}

async function goBuild(recipe: GoBuild): Promise<CachedBuild> {
  const moduleDir = resolve(goModules, recipe.module);
  const names = (await readdir(moduleDir)).sort();
  const files = await Promise.all(names.map((name) => readFile(join(moduleDir, name))));
  const ldflags = `-s -w ${recipe.ldflags ?? ''}`.trim();
  const inputs = [recipe.packagePath, ldflags, ...(recipe.extraInputs ?? []), ...names, ...files];
  const build = async (dir: string): Promise<void> => {
    const go = await findOnPath('go', ['/usr/local/go/bin']);
    if (go === null) {
      throw new ToolUnavailableError(`${recipe.label} is built with Go: install Go 1.26 or newer and put it on PATH.`);
    }
    const binDir = join(dir, 'bin');
    await mkdir(binDir);
    const flags = ['-mod=readonly', '-buildvcs=false', '-trimpath', '-ldflags', ldflags];
    try {
      await runCommand(go, ['build', ...flags, '-o', `${binDir}/`, recipe.packagePath], {
        cwd: moduleDir,
        env: { CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '' },
      });
    } catch (error) {
      if (error instanceof CommandFailedError && error.message.includes('requires go >=')) {
        throw new ToolUnavailableError(`${recipe.label} needs a newer Go: install Go 1.26 or newer.`, { cause: error });
      }
      throw error;
    }
    await recipe.finish?.(binDir);
  };
  return { label: recipe.label, inputs, build };
}
