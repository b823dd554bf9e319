import { readStored, writeStored } from '../platform/ui/stored-value.ts';
import { stackColumnTexts } from './texts.tsx';
/** Optional columns, in order. */
export const stackColumns = ['status', 'tags', 'version', 'owner', 'by', 'commit', 'resources', 'changed'] as const;
export type StackColumn = (typeof stackColumns)[number];

export const columnNames: Readonly<Record<StackColumn, string>> = stackColumnTexts;

const widths: Readonly<Record<StackColumn, string>> = {
  status: 'minmax(236px, 4fr)',
  tags: 'minmax(0, 3fr)',
  version: '72px',
  owner: 'minmax(90px, 2fr)',
  by: 'minmax(90px, 2fr)',
  commit: '84px',
  resources: '88px',
  changed: '120px',
};

const usual: readonly StackColumn[] = ['status', 'tags', 'resources', 'changed'];
const key = 'holdfast.stack-columns';

/** Reads column names; without any known name, returns the columns chosen last. */
export function chosenColumns(inUrl: string | undefined): readonly StackColumn[] {
  return readColumns(inUrl) ?? readColumns(readStored(key)) ?? usual;
}

/** The result is for the URL and this browser's storage. */
export function toggleColumn(columns: readonly StackColumn[], column: StackColumn): string {
  const chosen = stackColumns.filter((each) => columns.includes(each) !== (each === column));
  const text = chosen.length === 0 ? 'none' : chosen.join(',');
  writeStored(key, text);
  return text;
}

/** `isNarrow` leaves out columns that do not fit on small screens. */
export function gridTemplate(columns: readonly StackColumn[], isNarrow: boolean): string {
  const shown = columns.filter((column) => !isNarrow || column !== 'tags');
  return ['36px', 'minmax(180px, 5fr)', ...shown.map((column) => widths[column])].join(' ');
}

function readColumns(text: string | null | undefined): readonly StackColumn[] | null {
  if (text === null || text === undefined) return null;
  if (text === 'none') return [];
  const named = text.split(',');
  const known = stackColumns.filter((column) => named.includes(column));
  return known.length === 0 ? null : known;
}
