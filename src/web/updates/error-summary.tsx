import { Link } from '@tanstack/react-router';
import { Check, CircleX, Copy } from 'lucide-react';
import type { StackRef, UpdateDetails } from '../platform/app/procedure-types.ts';
import { nameInUrn, shortType } from '../platform/app/resource-name.ts';
import { Button } from '../platform/ui/button.tsx';
import { Clamped } from '../platform/ui/clamped.tsx';
import { useCopied } from '../platform/ui/copy-text.ts';
import { copyTexts } from '../platform/ui/texts.tsx';
import { Colored } from './colored.tsx';
import { listErrors } from './error-list.ts';
import styles from './error-summary.module.css';
import { failureMarkdown } from './failure-markdown.ts';
import { LastSuccess, useLastSuccess } from './last-success.tsx';
import { InputChanges } from './progress-row.tsx';
import { errorSummaryTexts } from './texts.tsx';
import type { UpdateProgress } from './update-progress.ts';
import { viewKind } from './update-status.ts';

const maxListed = 5;

interface ErrorSummaryProps {
  readonly stack: StackRef;
  readonly update: UpdateDetails;
  readonly progress: UpdateProgress;
  /** Revision of the tree: rerenders the component with it. */
  readonly revision: number;
}

/** Errors, the changes of the failed steps, and the last success. */
export function ErrorSummary({ progress, stack, update }: ErrorSummaryProps) {
  const success = useLastSuccess(stack, update);
  if (progress.diagnosticCounts.error === 0) return null;
  const errors = listErrors(progress);
  const report = (): string => {
    const name = `${viewKind(update)}${update.version === null || update.dryRun ? '' : ` ${update.version}`}`;
    const last = success === null ? '' : `${viewKind(success)} ${success.version ?? ''}`.trim();
    return failureMarkdown({
      title: errorSummaryTexts.updateOf(name, stack.organization, stack.project, stack.stack),
      url: location.origin + location.pathname,
      facts: [
        ...(update.commit === null ? [] : [errorSummaryTexts.commit(update.commit)]),
        ...(update.branch === null ? [] : [errorSummaryTexts.branch(update.branch)]),
        ...(success === null ? [] : [errorSummaryTexts.lastSuccess(last, success.commit)]),
      ],
      errors: errors.map(({ diagnostic: { message }, urn }) => ({ urn, message })),
    });
  };
  return (
    <section className={styles['errors']} aria-label={errorSummaryTexts.errors}>
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
                  {errorSummaryTexts.policyOf(diagnostic.policy.name, diagnostic.policy.pack)}
                </p>
              )}
              <Clamped lines={10} of={errorSummaryTexts.error}>
                <pre className={styles['text']}>
                  <Colored text={diagnostic.message.trim()} />
                </pre>
              </Clamped>
              {row === undefined ? null : <InputChanges row={row} />}
              <Link
                to="."
                search={{ view: 'messages', line: `${diagnostic.sequence}-1` }}
                className={styles['link']}
                aria-label={
                  urn === null
                    ? errorSummaryTexts.viewInMessages
                    : errorSummaryTexts.viewResourceInMessages(nameInUrn(urn))
                }
              >
                {errorSummaryTexts.viewInMessages}
              </Link>
            </div>
          </div>
        );
      })}
      {errors.length > maxListed ? (
        <p className={styles['more']}>{errorSummaryTexts.moreUnderMessages(errors.length - maxListed)}</p>
      ) : null}
      <div className={styles['foot']}>
        {success === null ? null : <LastSuccess stack={stack} update={update} success={success} />}
        <CopyMarkdown report={report} />
      </div>
    </section>
  );
}

function CopyMarkdown({ report }: { readonly report: () => string }) {
  const [isCopied, copy] = useCopied();
  return (
    <div>
      {isCopied === false ? <p role="alert">{copyTexts.refused}</p> : null}
      <Button size="small" onClick={({ currentTarget }) => void copy(report(), currentTarget)}>
        {isCopied === true ? <Check size={15} aria-hidden="true" /> : <Copy size={15} aria-hidden="true" />}
        {isCopied === true ? errorSummaryTexts.copied : errorSummaryTexts.copyAsMarkdown}
      </Button>
    </div>
  );
}
