import type { ImportRun } from '../../platform/app/contract.ts';

const kinds: Readonly<Record<string, string>> = {
  import: 'Import',
  verify: 'Comparison',
  rollback: 'Rollback',
};

/** What the run did. A newer server may have other kinds. */
export function kindOf({ kind }: Pick<ImportRun, 'kind'>): string {
  return kinds[kind] ?? kind;
}

const sourceKinds: Readonly<Record<ImportRun['sourceKind'], string>> = {
  service: 'service',
  bucket: "bucket of the CLI's own backend",
  folder: "folder of the CLI's own backend",
  archive: 'archive of another Holdfast',
};

/** What the source is. */
export function sourceOf({ sourceKind }: Pick<ImportRun, 'sourceKind'>): string {
  return sourceKinds[sourceKind] ?? sourceKind;
}

/** `2 stacks, 5 versions, 1 preview`. */
export function countsOf({ previews, stacks, versions }: Pick<ImportRun, 'previews' | 'stacks' | 'versions'>): string {
  return [
    counted(stacks, 'stack'),
    ...(versions > 0 || stacks === 0 ? [counted(versions, 'version')] : []),
    ...(previews > 0 ? [counted(previews, 'preview')] : []),
  ].join(', ');
}

/** `1 stack`, `2 stacks`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString()} ${noun}${count === 1 ? '' : 's'}`;
}
