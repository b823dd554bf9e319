import { Check, Lock, TriangleAlert } from 'lucide-react';
import { useState } from 'react';
import { nameInUrn, shortType } from '../platform/app/resource-name.ts';
import { Notice } from '../platform/ui/notice.tsx';
import styles from './removal-summary.module.css';
import { removalSummaryTexts } from './texts.tsx';
import type { UpdateProgress } from './update-progress.ts';

const maxListed = 8;

/** The resources that a preview would delete or replace, shown first: reviewers look for them. */
export function RemovalSummary({
  isWhole,
  progress,
}: {
  readonly progress: UpdateProgress;
  /** Whether its events are read to the end, where the deletions are. */
  readonly isWhole: boolean;
  /** Revision of the tree: rerenders the component with it. */
  readonly revision: number;
}) {
  const rows = [...progress.rows.values()];
  const deleted = rows.filter(({ op }) => op === 'delete');
  const replaced = rows.filter(({ op }) => op === 'replace');
  const shown = [...deleted, ...replaced];
  // The note that was shown during the reading stays, so that the rows below do not shift.
  const [wasPart] = useState(!isWhole);
  if (isWhole && shown.length === 0 && !wasPart) return null;
  const title = isWhole ? removalSummaryTexts.title(deleted.length, replaced.length) : removalSummaryTexts.reading;
  return (
    <Notice
      tone={shown.length === 0 ? 'neutral' : 'warning'}
      icon={isWhole && shown.length === 0 ? <Check size={17} /> : <TriangleAlert size={17} />}
      title={<span role="status">{title}</span>}
    >
      {shown.length === 0 ? null : (
        <ul className={styles['resources']} aria-label={removalSummaryTexts.label}>
          {shown.slice(0, maxListed).map(({ isProtected, op, type, urn }) => (
            <li key={urn} title={urn}>
              <span className={op === 'delete' ? styles['deleted'] : styles['replaced']}>{op}</span>
              <code>{nameInUrn(urn)}</code>
              <span className={styles['type']}>{shortType(type)}</span>
              {isProtected ? <Lock size={12} aria-label={removalSummaryTexts.protected} /> : null}
            </li>
          ))}
          {shown.length > maxListed ? <li>{removalSummaryTexts.more(shown.length - maxListed)}</li> : null}
        </ul>
      )}
    </Notice>
  );
}
