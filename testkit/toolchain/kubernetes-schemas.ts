import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';

import { CommandFailedError, findOnPath, runCommand, ToolUnavailableError } from './command.ts';
import type { CachedBuild } from './tool-cache.ts';

/** Versions of Kubernetes whose schemas are available: from the oldest that the chart supports to the newest. */
export const kubernetesVersions = ['1.30.0', '1.33.0', '1.35.0', '1.37.0'] as const;

/** A Python package that consists of the schemas of Kubernetes. pip verifies the hash. */
const schemaPackage = {
  name: 'kubernetes-validate',
  version: '1.37.0',
  sha256: '85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9',
};

/** Go modules with the definitions of custom resources. `sum` is the value in go.sum. */
const resourceModules = [
  {
    module: 'github.com/kedacore/keda/v2@v2.21.0',
    sum: 'h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=',
    files: ['config/crd/bases/keda.sh_scaledobjects.yaml'],
  },
  {
    module: 'sigs.k8s.io/gateway-api@v1.6.3',
    sum: 'h1:lKpJa5bGlraC/QeACvCpsHLdmO6y0iKfzVl6gzaFEYc=',
    files: ['config/crd/standard/gateway.networking.k8s.io_httproutes.yaml'],
  },
  {
    module: 'github.com/prometheus-operator/prometheus-operator@v0.85.0',
    sum: 'h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=',
    files: ['servicemonitors', 'prometheusrules'].map(
      (name) => `example/prometheus-operator-crd/monitoring.coreos.com_${name}.yaml`,
    ),
  },
  {
    module: 'github.com/external-secrets/external-secrets@v0.16.2',
    sum: 'h1:iNY+gIgSyL5higXTfnz+hdPCaiB/43UiHLqE7HBpj68=',
    files: ['config/crds/bases/external-secrets.io_externalsecrets.yaml'],
  },
] as const;

/** Extracts the needed folders of the package, which has 17,000 files. Their references name a server, so they are made relative. */
const extract = `
import json, sys, zipfile
archive, target, *versions = sys.argv[1:]
with zipfile.ZipFile(archive) as files:
    for name in files.namelist():
        parts = name.split('/')
        if len(parts) > 2 and parts[2] in versions:
            schema = json.loads(files.read(name).replace(b'"/api/_definitions.json#', b'"_definitions.json#'))
            schema.pop('$id', None)
            with open(f'{target}/{parts[2]}/{parts[3]}', 'w') as copy:
                json.dump(schema, copy)
`;

/**
 * JSON schemas that permit no unknown field: schemas of Kubernetes in `v<version>-local-strict`, and of custom resources in `custom`, with
 * file names that kubeconform finds.
 */
export const kubernetesSchemas: CachedBuild = {
  label: `kubernetes-schemas-${schemaPackage.version}`,
  typicalSeconds: 10,
  inputs: [JSON.stringify({ kubernetesVersions, schemaPackage, resourceModules }), extract, 'closed-1'],
  build: async (dir) => {
    const scratch = await mkdtemp(join(tmpdir(), 'holdfast-schemas-'));
    try {
      await addKubernetes(dir, scratch);
      await addCustomResources(dir, scratch);
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  },
};

async function addKubernetes(dir: string, scratch: string): Promise<void> {
  const python = await findOnPath('python3');
  if (python === null) throw new ToolUnavailableError('The schemas of Kubernetes need Python 3: install python3-venv.');
  const venv = join(scratch, 'venv');
  try {
    await runCommand(python, ['-m', 'venv', venv]);
  } catch (error) {
    throw new ToolUnavailableError('The schemas of Kubernetes need Python’s venv module: install python3-venv.', {
      cause: error,
    });
  }
  const { name, version, sha256 } = schemaPackage;
  const wanted = join(scratch, 'requirements.txt');
  await writeFile(wanted, `${name}==${version} --hash=sha256:${sha256}\n`);
  const pip = ['-m', 'pip', 'download', '--quiet', '--disable-pip-version-check', '--no-deps', '--require-hashes'];
  await runCommand(join(venv, 'bin', 'python'), [...pip, '--dest', scratch, '--requirement', wanted]);
  const folders = kubernetesVersions.map((each) => `v${each}-local-strict`);
  for (const folder of folders) await mkdir(join(dir, folder));
  const archive = join(scratch, `${name.replace('-', '_')}-${version}-py3-none-any.whl`);
  await runCommand(python, ['-c', extract, archive, dir, ...folders]);
}

interface Definition {
  readonly spec: {
    readonly names: { readonly kind: string };
    readonly versions: readonly { readonly name: string; readonly schema: { readonly openAPIV3Schema: object } }[];
  };
}

async function addCustomResources(dir: string, scratch: string): Promise<void> {
  const go = await findOnPath('go', ['/usr/local/go/bin']);
  if (go === null) throw new ToolUnavailableError('The schemas of custom resources are Go modules: install Go 1.26.');
  // The hashes are compared below.
  const env = { GOWORK: 'off', GOFLAGS: '-mod=mod', GONOSUMDB: '*' };
  const names = resourceModules.map(({ module }) => module);
  const output = await runCommand(go, ['mod', 'download', '-json', ...names], { cwd: scratch, env });
  const folders = new Map(
    (
      JSON.parse(`[${output.replaceAll('}\n{', '},{')}]`) as {
        Path: string;
        Version: string;
        Sum: string;
        Dir: string;
      }[]
    ).map(({ Path, Version, Sum, Dir }) => [`${Path}@${Version} ${Sum}`, Dir]),
  );
  await mkdir(join(dir, 'custom'));
  for (const { module, sum, files } of resourceModules) {
    const folder = folders.get(`${module} ${sum}`);
    if (folder === undefined) throw new CommandFailedError(`${module} does not have the hash ${sum}`);
    for (const file of files) {
      const { spec } = parse(await readFile(join(folder, file), 'utf8')) as Definition;
      for (const { name, schema } of spec.versions)
        await writeFile(
          join(dir, 'custom', `${spec.names.kind.toLowerCase()}-${name}.json`),
          JSON.stringify(closed(schema.openAPIV3Schema)),
        );
    }
  }
}

/** The schema without properties other than the named ones, as an API server checks objects. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  const isOpen = 'x-kubernetes-preserve-unknown-fields' in copy || 'additionalProperties' in copy;
  // For the whole object, the definition only requires metadata.
  if (typeof copy['properties'] === 'object' && typeof copy['type'] === 'string' && !isOpen)
    copy['additionalProperties'] = false;
  return copy;
}
