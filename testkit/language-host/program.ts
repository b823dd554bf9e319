import { readFileSync } from 'node:fs';
import { connect } from 'node:http2';
import { join } from 'node:path';
import { framed, headerBytes, serveGrpc } from './grpc-server.ts';
import { encode, type Field, fieldOf } from './protobuf.ts';

/** A component, or a Thing of the test provider if it has a value. */
export interface ProgramResource {
  readonly name: string;
  /** Name of the parent resource. Default: the stack. */
  readonly parent?: string;
  readonly value?: string;
  readonly dependsOn?: readonly string[];
  /** New names of the resource and of its children, by their old names. */
  readonly renames?: Readonly<Record<string, string>>;
}

interface OldResource {
  readonly urn: string;
  readonly [member: string]: unknown;
}

/** Registers the resources of `program.json` one after another. */
export async function* runProgram(request: Buffer): AsyncGenerator<Buffer> {
  const [project, stack, directory, monitor] = [1, 2, 3, 9].map((number) => fieldOf(request, number).toString());
  const file = join(directory as string, 'program.json');
  const resources = JSON.parse(readFileSync(file, 'utf8')) as ProgramResource[];
  const call = (method: string, message: Buffer) =>
    invoke(`http://${monitor}`, `pulumirpc.ResourceMonitor/${method}`, message);
  const register = async (fields: readonly Field[]): Promise<string> =>
    fieldOf(await call('RegisterResource', encode(fields)), 1).toString();
  const callbacks = `127.0.0.1:${await serveGrpc({
    Invoke: (callback) => {
      const { renames = {} } = resources[Number(fieldOf(callback, 1).toString())] as ProgramResource;
      return [encode([[1, migrate(fieldOf(fieldOf(callback, 2), 2), renames)]])];
    },
  })}`;
  try {
    const root = await register([
      [1, 'pulumi:pulumi:Stack'],
      [2, `${project}-${stack}`],
    ]);
    const urns = new Map<string, string>();
    for (const [at, { dependsOn = [], name, parent = '', renames, value }] of resources.entries()) {
      const ownFields: Field[] = value === undefined ? [[1, 'test:index:Group']] : thingFields(value);
      const urn = await register([
        ...ownFields,
        [2, name],
        [3, urns.get(parent) ?? root],
        ...dependsOn.map((other): Field => [7, urns.get(other) ?? '']),
        ...(renames
          ? [
              [
                43,
                encode([
                  [1, callbacks],
                  [2, String(at)],
                ]),
              ] as const,
            ]
          : []),
      ]);
      urns.set(name, urn);
    }
    yield Buffer.alloc(0);
  } catch (error) {
    yield encode([[1, String(error)]]);
  }
}

function thingFields(value: string): Field[] {
  const inputs = encode([
    [
      1,
      encode([
        [1, 'value'],
        [2, encode([[3, value]])],
      ]),
    ],
  ]);
  return [
    [1, 'holdfast:index:Thing'],
    [4, 1],
    [5, inputs],
    [11, '1.0.0'],
  ];
}

/** The renamed resources; empty if there is nothing to rename. */
function migrate(oldState: Buffer, renames: Readonly<Record<string, string>>): Buffer {
  const resources = JSON.parse(oldState.toString()) as OldResource[];
  const successors = resources.flatMap(({ urn }): [string, string][] => {
    const at = urn.lastIndexOf('::') + 2;
    const name = renames[urn.slice(at)];
    return name === undefined ? [] : [[urn, urn.slice(0, at) + name]];
  });
  if (successors.length === 0) return Buffer.alloc(0);
  const renamed = new Map(successors);
  const state = resources.map((resource) => ({ ...resource, urn: renamed.get(resource.urn) ?? resource.urn }));
  return encode([
    [1, JSON.stringify(state)],
    ...successors.map(
      (pair): Field => [
        2,
        encode([
          [1, pair[0]],
          [2, pair[1]],
        ]),
      ],
    ),
  ]);
}

/** Rejects with the message of the server. */
async function invoke(url: string, method: string, message: Buffer): Promise<Buffer> {
  const session = connect(url);
  try {
    const stream = session.request({
      ':method': 'POST',
      ':path': `/${method}`,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    let status: Record<string, unknown> = {};
    for (const event of ['response', 'trailers'] as const)
      stream.on(event, (headers) => {
        status = { ...status, ...headers };
      });
    stream.end(framed(message));
    const parts: Buffer[] = [];
    for await (const part of stream) parts.push(part as Buffer);
    if (status['grpc-status'] !== '0')
      throw new Error(`${method}: ${decodeURIComponent(String(status['grpc-message']))}`);
    return Buffer.concat(parts).subarray(headerBytes);
  } finally {
    session.close();
  }
}
