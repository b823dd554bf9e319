import { Link } from '@tanstack/react-router';
import { Check, CircleX, Copy } from 'lucide-react';
import { useState } from 'react';
import type { StackRef, UpdateDetails } from '../platform/app/contract.ts';
import { nameInUrn, shortType } from '../platform/app/resource-name.ts';
import { Button } from '../platform/ui/button.tsx';
import { Clamped } from '../platform/ui/clamped.tsx';
import { Colored } from './colored.tsx';
import { listErrors } from './error-list.ts';
import styles from './error-summary.module.css';
import { failureMarkdown } from './failure-markdown.ts';
import { LastSuccess, useLastSuccess } from './last-success.tsx';
import { InputChanges } from './progress-row.tsx';
import type { UpdateProgress } from './update-progress.ts';
import { viewKind } from './update-status.ts';

const maxListed = 5;
const copiedMs = 1_500;

interface ErrorSummaryProps {
  readonly stack: StackRef;
  readonly update: UpdateDetails;
  readonly progress: UpdateProgress;
  /** Revision of the tree: rerenders the component with it. */
  readonly revision: number;
}

/** Why an update failed, before anything else: errors, what the failed steps change, and the last success. */
export function ErrorSummary({ progress, stack, update }: ErrorSummaryProps) {
  const success = useLastSuccess(stack, update);
  if (progress.diagnosticCounts.error === 0) return null;
  const errors = listErrors(progress);
  const report = (): string => {
    const name = `${viewKind(update)}${update.version === null || update.dryRun ? '' : ` ${update.version}`}`;
    const last = success === null ? '' : `${viewKind(success)} ${success.version ?? ''}`.trim();
    return failureMarkdown({
      title: `${name} of ${stack.organization}/${stack.project}/${stack.stack}`,
      url: location.origin + location.pathname,
      facts: [
        ...(update.commit === null ? [] : [`Commit: ${update.commit}`]),
        ...(update.branch === null ? [] : [`Branch: ${update.branch}`]),
        ...(success === null ? [] : [`Last success: ${last}${success.commit === null ? '' : `, ${success.commit}`}`]),
      ],
      errors: errors.map(({ diagnostic: { message }, urn }) => ({ urn, message })),
    });
  };
  return (
    <section className={styles['errors']} aria-label="Errors">
      {errors.slice(0, maxListed).map(({ diagnostic, type, urn }) => {
        const row = urn === null ? undefined : progress.rows.get(urn);
        return (
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
              {row === undefined ? null : <InputChanges row={row} />}
              <Link
                to="."
                search={{ view: 'messages', line: `${diagnostic.sequence}-1` }}
                className={styles['link']}
                aria-label={`View in messages${urn === null ? '' : `: ${nameInUrn(urn)}`}`}
              >
                View in messages
              </Link>
            </div>
          </div>
        );
      })}
      {errors.length > maxListed ? (
        <p className={styles['more']}>{errors.length - maxListed} more under Messages</p>
      ) : null}
      <div className={styles['foot']}>
        {success === null ? null : <LastSuccess stack={stack} update={update} success={success} />}
        <CopyMarkdown report={report} />
      </div>
    </section>
  );
}

function CopyMarkdown({ report }: { readonly report: () => string }) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(report());
    setIsCopied(true);
    setTimeout(() => setIsCopied(false), copiedMs);
  };
  return (
    <Button size="small" onClick={() => void copy().catch(() => {})}>
      {isCopied ? <Check size={15} aria-hidden="true" /> : <Copy size={15} aria-hidden="true" />}
      {isCopied ? 'Copied' : 'Copy as Markdown'}
    </Button>
  );
}
