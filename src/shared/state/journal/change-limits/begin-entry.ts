import { JsonScanner } from '../../../platform/json/json-scanner.ts';
import { Slices, scanInSlices } from '../../../platform/slices/slices.ts';
import { urnKey } from '../../deployments/live-urns.ts';
import type { BatchEntry } from '../journal-batch.ts';

export interface BegunOperation {
  readonly sequenceId: number;
  /** Null if it is missing or not a positive integer. */
  readonly operationId: number | null;
  /** For example `creating`; null for steps that change nothing, e.g. of a refresh. */
  readonly type: string | null;
  readonly urn: string;
  readonly resourceType: string;
  /** The resource is neither a component nor a provider, and is not only read. */
  readonly isManaged: boolean;
}

/** Begins the text of a refused entry. Clients never write this member. */
export const refusedPrefix = '{"refused":true,';

export async function readBegins(entries: readonly BatchEntry[]): Promise<BegunOperation[]> {
  const slices = new Slices();
  const begins: BegunOperation[] = [];
  for (const entry of entries) {
    if (!entry.isBegin) continue;
    begins.push(await readBegin(entry));
    await slices.spend(entry.text.length);
  }
  return begins;
}

/** The text is valid JSON. Fields of a wrong type count as missing; a replay rejects them later. */
export async function readBegin({ sequenceId, text }: BatchEntry): Promise<BegunOperation> {
  const values = new Map<string, unknown>();
  const scanner = new JsonScanner({
    reportDepth: 3,
    onValue: (path, kind, start, end) => {
      // A name with a dot is not one of these fields. A long name is not joined again for each value inside it.
      if (kind === 'object' || kind === 'array' || path.some(isOther)) return;
      const name = path.join('.');
      if (names.has(name)) values.set(name, JSON.parse(text.toString('utf8', start, end)));
    },
    skips: (path) => (path.length === 1 ? path[0] !== 'operation' : path.length === 2 && path[1] !== 'resource'),
  });
  await scanInSlices(scanner, text);
  scanner.end();
  const string = (name: string): string => {
    const value = values.get(name);
    return typeof value === 'string' ? value : '';
  };
  const operationId = values.get('operationID');
  const resourceType = string('operation.resource.type');
  return {
    sequenceId,
    operationId: Number.isSafeInteger(operationId) && (operationId as number) > 0 ? (operationId as number) : null,
    type: string('operation.type') || null,
    urn: string('operation.resource.urn'),
    resourceType,
    isManaged:
      values.get('operation.resource.custom') === true &&
      values.get('operation.resource.external') !== true &&
      !resourceType.startsWith('pulumi:providers:'),
  };
}

const maxMemberChars = 30;

function isOther(part: string | number): boolean {
  return typeof part === 'string' && (part.length > maxMemberChars || part.includes('.'));
}

const names = new Set([
  'operationID',
  'operation.type',
  ...['urn', 'type', 'custom', 'external'].map((member) => `operation.resource.${member}`),
]);

/** The keys of resources that migrations insert into the state. */
export async function readMigrated(entries: readonly BatchEntry[]): Promise<ReadonlySet<string>> {
  const keys = new Set<string>();
  for (const { isMigration, text } of entries) {
    if (!isMigration) continue;
    const scanner = new JsonScanner({
      reportDepth: 3,
      onValue: (path, kind, start, end) => {
        if (path.length !== 3 || path[0] !== 'states' || path[2] !== 'urn' || kind !== 'string') return;
        keys.add(urnKey(JSON.parse(text.toString('utf8', start, end)) as string));
      },
    });
    await scanInSlices(scanner, text);
    scanner.end();
  }
  return keys;
}

/**
 * The replacement takes the entry's number, so that the journal has no gap. It adds no pending operation, because the engine never calls
 * the provider.
 */
export function refusedEntry({ operationId, sequenceId }: BegunOperation): BatchEntry {
  const fields = { version: 1, kind: 0, sequenceID: sequenceId, ...(operationId && { operationID: operationId }) };
  return {
    sequenceId,
    isBegin: true,
    isMigration: false,
    text: Buffer.from(refusedPrefix + JSON.stringify(fields).slice(1)),
  };
}
