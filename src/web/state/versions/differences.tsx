import type { StackDifference, VersionDifference } from '../../platform/app/procedure-types.ts';
import { PropertyDiff } from '../../platform/app/property-diff.tsx';
import { shortType } from '../../platform/app/resource-name.ts';
import { AccordionList, AccordionRow } from '../../platform/ui/accordion-list.tsx';
import { viewOperation } from '../../updates/operations.ts';
import { differenceTexts } from '../texts.tsx';
import styles from './version-diff.module.css';

const operations = { created: 'create', updated: 'update', deleted: 'delete', replaced: 'replace' } as const;

/** The label of a difference, and its two sides. */
export interface DifferenceLabels {
  readonly changes: Readonly<Record<keyof typeof operations, string>>;
  readonly before: string;
  readonly after: string;
}

export const versionLabels: DifferenceLabels = {
  changes: differenceTexts.changes,
  before: differenceTexts.before,
  after: differenceTexts.after,
};

export function Differences({
  items,
  labels = versionLabels,
}: {
  readonly items: readonly (VersionDifference | StackDifference)[];
  readonly labels?: DifferenceLabels;
}) {
  return (
    <AccordionList items={items} keyOf={({ urn }) => urn} row={(item) => <Difference item={item} labels={labels} />} />
  );
}

interface DifferenceProps {
  readonly item: VersionDifference | StackDifference;
  readonly labels: DifferenceLabels;
}

function Difference({ item, labels }: DifferenceProps) {
  const operation = viewOperation(operations[item.change]);
  const isKept = item.change === 'updated' || item.change === 'replaced';
  return (
    <AccordionRow
      name={item.name}
      type={shortType(item.type)}
      urn={item.urn}
      isOpen={isKept && item.paths.length <= 20}
      sign={
        <span className={`${styles['sign']} ${styles[operation.tone]}`} aria-hidden="true">
          {operation.sign}
        </span>
      }
      fact={
        <>
          {labels.changes[item.change]}
          {isKept && item.pathCount > 0 ? differenceTexts.properties(item.pathCount) : ''}
        </>
      }
    >
      {() => <Paths item={item} labels={labels} />}
    </AccordionRow>
  );
}

function Paths({ item, labels }: DifferenceProps) {
  return (
    <>
      <PropertyDiff paths={item.paths} sides={[labels.before, labels.after]} className={styles['paths']} />
      {item.pathCount > item.paths.length ? (
        <p className={styles['more']}>{differenceTexts.moreProperties(item.pathCount - item.paths.length)}</p>
      ) : null}
    </>
  );
}
