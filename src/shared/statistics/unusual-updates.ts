import type { Queryable } from '../platform/db/sql.ts';
import {
  type ComparedValue,
  type Counts,
  comparedValues,
  createStatisticsRepository,
  type Usual,
} from './statistics-repository.ts';

/** With fewer updates, nothing is usual. */
const minUpdates = 5;

/** A client sent the text, so all values that are not counts are dropped. */
export function countsOf(resourceChanges: string): Counts {
  const values = parsed(resourceChanges);
  const count = (operation: string): number => {
    const value = values[operation];
    return Number.isSafeInteger(value) && (value as number) > 0 ? Math.min(value as number, 1_000_000_000) : 0;
  };
  return { creates: count('create'), updates: count('update'), replaces: count('replace'), deletes: count('delete') };
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** A tenth of all updates take longer than the range, most of them slightly. Times are unusual only above this multiple. */
const minTimes = 1.5;
const minSecondsAbove = 10;

/** The value is above the range of earlier updates. */
export interface Unusual {
  readonly name: ComparedValue;
  readonly value: number;
  readonly range: readonly [number, number];
}

const verbs: Readonly<Partial<Record<ComparedValue, string>>> = { seconds: 'took', waitedSeconds: 'waited' };

function isUnusual(name: ComparedValue, value: number, most: number): boolean {
  return value > (verbs[name] === undefined ? most : Math.max(most * minTimes, most + minSecondsAbove));
}

/** Empty if too few updates are known. */
export function findUnusual(values: Readonly<Partial<Record<ComparedValue, number>>>, usual: Usual | null): Unusual[] {
  if (!usual || usual.count < minUpdates) return [];
  const { counts, seconds, waitedSeconds } = usual;
  const ranges = { ...counts, seconds, waitedSeconds };
  return comparedValues.flatMap((name) => {
    const [value, range] = [values[name], ranges[name]];
    return value !== undefined && isUnusual(name, value, range[1]) ? [{ name, value, range }] : [];
  });
}

/** For example `deletes 14, usually 0 to 2`, or `took 90 s, usually 3 to 5 s`. */
export function describeUnusual({ name, range: [from, to], value }: Unusual): string {
  const verb = verbs[name];
  if (verb === undefined) return `${name} ${value}, usually ${from === to ? to : `${from} to ${to}`}`;
  const [shown, least, most] = [value, from, to].map((seconds) => Math.round(seconds));
  return `${verb} ${shown} s, usually ${least === most ? most : `${least} to ${most}`} s`;
}

/** A preview is compared with updates by its counts only, because its duration differs. */
export async function findUnusualOfUpdate(db: Queryable, updateId: string): Promise<string[]> {
  const statistics = createStatisticsRepository(db);
  const update = await statistics.findComparable(updateId);
  if (!update) return [];
  const { isPreview, kind, resourceChanges, seconds, stackId, waitedSeconds } = update;
  const usual = await statistics.findUsual(stackId, kind === 'preview' ? 'update' : kind, updateId);
  const times = isPreview ? {} : { seconds, waitedSeconds };
  return findUnusual({ ...countsOf(resourceChanges), ...times }, usual).map(describeUnusual);
}
