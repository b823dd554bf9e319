import type { ImportRun } from '../../platform/app/contract.ts';
import { counted } from '../../platform/ui/counted.ts';

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
  service: 'a service',
  bucket: "a bucket of the CLI's own backend",
  folder: "a folder of the CLI's own backend",
  archive: 'an archive of another Holdfast',
};

const beginnings: Readonly<Record<string, string>> = {
  import: 'Import from',
  verify: 'Comparison with',
  rollback: 'Rollback of an import from',
};

/** What the run did with what: `Import from a service`. */
export function titleOf({ kind, sourceKind }: Pick<ImportRun, 'kind' | 'sourceKind'>): string {
  return `${beginnings[kind] ?? `${kind}:`} ${sourceKinds[sourceKind] ?? sourceKind}`;
}

/** `2 stacks, 5 versions, 1 preview`. */
export function countsOf({ previews, stacks, versions }: Pick<ImportRun, 'previews' | 'stacks' | 'versions'>): string {
  return [
    counted(stacks, 'stack'),
    ...(versions > 0 || stacks === 0 ? [counted(versions, 'version')] : []),
    ...(previews > 0 ? [counted(previews, 'preview')] : []),
  ].join(', ');
}
