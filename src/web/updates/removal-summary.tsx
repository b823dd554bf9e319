import { Check, Lock, TriangleAlert } from 'lucide-react';
import { useState } from 'react';
import type { UpdateDetails } from '../platform/app/procedure-types.ts';
import { nameInUrn, shortType } from '../platform/app/resource-name.ts';
import { Notice } from '../platform/ui/notice.tsx';
import type { EventFeed } from './event-feed.ts';
import styles from './removal-summary.module.css';
import { removalSummaryTexts } from './texts.tsx';

const maxListed = 8;

/** Shown first, because reviewers look for deletions and replacements. */
export function RemovalSummary({
  feed,
  update,
}: {
  readonly feed: Pick<EventFeed, 'hasGaps' | 'isOver' | 'progress'>;
  readonly update: Pick<UpdateDetails, 'status'>;
  /** Revision of the tree: rerenders the component with it. */
  readonly revision: number;
}) {
  const { progress } = feed;
  const rows = [...progress.rows.values()];
  const deleted = rows.filter(({ op }) => op === 'delete');
  const replaced = rows.filter(({ op }) => op === 'replace');
  const shown = [...deleted, ...replaced];
  // The engine's summary follows the deletions. After a failure, the summary exists, too, but may be incomplete.
  const isWhole = feed.isOver && !feed.hasGaps && progress.summary !== null && update.status === 'succeeded';
  // The note that was shown while reading stays, so that the rows below do not shift.
  const [wasPart] = useState(!feed.isOver);
  if (rows.length === 0 || (isWhole && shown.length === 0 && !wasPart)) return null;
  const title = isWhole
    ? removalSummaryTexts.title(deleted.length, replaced.length)
    : !feed.isOver
      ? removalSummaryTexts.reading
      : feed.hasGaps || update.status === 'succeeded'
        ? removalSummaryTexts.isPart
        : removalSummaryTexts.endsEarly;
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
