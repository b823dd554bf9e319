import { CircleX } from 'lucide-react';
import { nameInUrn, shortType } from '../platform/app/resource-name.ts';
import { Clamped } from '../platform/ui/clamped.tsx';
import { Colored } from './colored.tsx';
import { listErrors } from './error-list.ts';
import styles from './error-summary.module.css';
import type { UpdateProgress } from './update-progress.ts';

const maxListed = 5;

/** Why an update failed, before anything else. */
export function ErrorSummary({
  progress,
}: {
  readonly progress: UpdateProgress;
  /** Revision of the tree: rerenders the component with it. */
  readonly revision: number;
}) {
  if (progress.diagnosticCounts.error === 0) return null;
  const errors = listErrors(progress);
  return (
    <section className={styles['errors']} aria-label="Errors">
      {errors.slice(0, maxListed).map(({ diagnostic, type, urn }) => (
        <div key={diagnostic.sequence} className={styles['error']}>
          <CircleX size={16} className={styles['icon']} aria-hidden="true" />
          <div className={styles['body']}>
            {urn === null ? null : (
              <p className={styles['where']} title={urn}>
                <code>{nameInUrn(urn)}</code> <span className={styles['type']}>{shortType(type)}</span>
              </p>
            )}
            {diagnostic.policy === null ? null : (
              <p className={styles['where']}>
                Policy <code>{diagnostic.policy.name}</code> of <code>{diagnostic.policy.pack}</code>
              </p>
            )}
            <Clamped lines={10} of="error">
              <pre className={styles['text']}>
                <Colored text={diagnostic.message.trim()} />
              </pre>
            </Clamped>
          </div>
        </div>
      ))}
      {errors.length > maxListed ? (
        <p className={styles['more']}>{errors.length - maxListed} more under Messages</p>
      ) : null}
    </section>
  );
}
