import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { gzipSync } from 'node:zlib';

/** A stack of a DIY backend. */
export interface DiyStack {
  readonly project?: string;
  readonly stack: string;
  readonly versions: number;
  readonly resources?: number;
  /** Beyond the resources' own texts, in each resource. */
  readonly filler?: string;
  readonly tags?: Readonly<Record<string, string>>;
  readonly gzip?: boolean;
  /** Replaces the newest state. */
  readonly newest?: object;
}

/** When the first update of every stack began, in s. */
const firstSeconds = 1_700_000_000;

/** A checkpoint file as the CLI writes it. */
export function diyCheckpoint(
  { filler = '', project = 'proj', resources = 3, stack }: DiyStack,
  version: number,
): object {
  const urn = (type: string, name: string): string => `urn:pulumi:${stack}::${project}::${type}::${name}`;
  const root = { urn: urn('pulumi:pulumi:Stack', `${project}-${stack}`), custom: false, type: 'pulumi:pulumi:Stack' };
  const others = Array.from({ length: resources }, (_, at) => ({
    ...{ urn: urn('pulumi:index:Stash', `r${at}`), custom: true, id: `id-${at}`, type: 'pulumi:index:Stash' },
    ...{ inputs: { input: `${filler}${at === 0 ? version : 0}` }, outputs: {}, parent: root.urn },
  }));
  const latest = {
    manifest: { time: '2026-01-01T00:00:00Z', magic: '', version: '' },
    secrets_providers: { type: 'passphrase', state: { salt: 'v1:AAAA:v1:BBBB:CCCC' } },
    resources: [root, ...others],
    metadata: {},
  };
  return { version: 3, checkpoint: { stack: `organization/${project}/${stack}`, latest } };
}

/** Writes a folder in the layout with projects, or in the one without if stacks have no project. */
export async function writeDiyFolder(directory: string, stacks: readonly DiyStack[], from = 1): Promise<void> {
  const root = path.join(directory, '.pulumi');
  const write = async (name: string, content: object, gzip = false): Promise<void> => {
    const file = path.join(root, gzip ? `${name}.gz` : name);
    await mkdir(path.dirname(file), { recursive: true });
    const text = Buffer.from(JSON.stringify(content));
    await writeFile(file, gzip ? gzipSync(text) : text);
  };
  if (stacks.every(({ project }) => project !== undefined)) {
    await mkdir(root, { recursive: true });
    await writeFile(path.join(root, 'meta.yaml'), 'version: 1\n');
  }
  for (const each of stacks) {
    const { gzip, newest, project, stack, tags, versions } = each;
    const path = project === undefined ? stack : `${project}/${stack}`;
    for (let version = from; version <= versions; version++) {
      const seconds = firstSeconds + version * 3600;
      const name = `history/${path}/${stack}-${seconds}000000000`;
      await write(
        `${name}.history.json`,
        {
          ...{ kind: version % 5 === 0 ? 'refresh' : 'update', startTime: seconds, endTime: seconds + 30 },
          ...{ message: `change ${version}`, version: 0, result: version % 7 === 0 ? 'failed' : 'succeeded' },
          environment: { 'git.head': `commit-${version}`, 'ci.build.id': String(version) },
          config: {
            'proj:a': 'plain',
            'proj:b': { secure: 'v1:AAAA:BBBB' },
            'proj:c': { list: [1.5, { secure: 'v1:C:D' }] },
          },
          resourceChanges: { update: 1, same: 2 },
        },
        gzip,
      );
      await write(`${name}.checkpoint.json`, diyCheckpoint(each, version), gzip);
    }
    await write(`stacks/${path}.json`, newest ?? diyCheckpoint(each, versions), gzip);
    if (tags) await write(`stacks/${path}.pulumi-tags`, { version: 1, tags });
  }
}
