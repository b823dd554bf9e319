import { Link } from '@tanstack/react-router';
import { TriangleAlert } from 'lucide-react';
import type { ReactNode } from 'react';
import type { StackRef, UpdateDetails } from '../platform/app/procedure-types.ts';
import { CopyButton } from '../platform/ui/code.tsx';
import { FactList, FactRow } from '../platform/ui/fact-list.tsx';
import { numberLocale } from '../platform/ui/locale.ts';
import { Notice } from '../platform/ui/notice.tsx';
import { duration } from '../platform/ui/relative-time.ts';
import { ConfigTable } from './config-table.tsx';
import { updateDetailsTexts } from './texts.tsx';
import styles from './update-details.module.css';
import { Duration, useStatistics } from './update-statistics.tsx';
import { viewEndReason, viewKind } from './update-status.ts';

export function UpdateDetailsView({ stack, update }: { readonly stack: StackRef; readonly update: UpdateDetails }) {
  const environment = Object.entries(update.environment ?? {}).sort(([one], [other]) => (one < other ? -1 : 1));
  const query = useStatistics(stack, update);
  const removed = query.data?.removedOutputs ?? null;
  const endReason = viewEndReason(update.endReason);
  return (
    <div className={styles['details']}>
      {removed === null ? null : (
        <Notice
          tone={removed.consumers === null ? 'neutral' : 'warning'}
          icon={<TriangleAlert size={16} />}
          title={
            removed.isUnknown
              ? updateDetailsTexts.removalUnknown(update.dryRun)
              : updateDetailsTexts.removedOutputs(update.dryRun, removed.names.length)
          }
        >
          {removed.isUnknown ? (
            <p>{updateDetailsTexts.eventsNotRead(update.dryRun)}</p>
          ) : (
            <p className={styles['removed']}>
              {updateDetailsTexts.names(
                removed.names.slice(0, 20).map((name) => <code key={name}>{name}</code>),
                removed.names.length,
              )}
            </p>
          )}
          <p>
            {removed.consumers === null
              ? updateDetailsTexts.noConsumers
              : updateDetailsTexts.consumers(removed.consumers)}
          </p>
        </Notice>
      )}
      <Section title={updateDetailsTexts.run}>
        <FactList>
          <FactRow name={updateDetailsTexts.id}>
            <code>{update.updateId}</code>
            <CopyButton text={update.updateId} label={updateDetailsTexts.copyTheId} />
          </FactRow>
          {update.baseVersion === null ? null : (
            <FactRow name={updateDetailsTexts.basedOn}>
              <Link
                to="/$organization/$project/$stack/updates/$version"
                params={{ ...stack, version: String(update.baseVersion) }}
              >
                {updateDetailsTexts.baseVersion(update.baseVersion)}
              </Link>
            </FactRow>
          )}
          {update.preview === null ? null : (
            <FactRow name={updateDetailsTexts.preview}>
              <Link
                to="/$organization/$project/$stack/previews/$updateId"
                params={{ ...stack, updateId: update.preview }}
              >
                {updateDetailsTexts.thePreview}
              </Link>
            </FactRow>
          )}
          {update.follower === null ? null : (
            <FactRow name={updateDetailsTexts.followedBy}>
              <Link
                to="/$organization/$project/$stack/previews/$updateId"
                params={{ ...stack, updateId: update.follower }}
              >
                {updateDetailsTexts.theUpdate}
              </Link>
            </FactRow>
          )}
          {update.waited === null ? null : (
            <FactRow name={updateDetailsTexts.waitedInQueue}>
              {update.waited.behind.length === 0
                ? updateDetailsTexts.becauseOfALimit(duration(update.waited.seconds))
                : duration(update.waited.seconds)}
              {update.waited.behind.map((held) => (
                <Link
                  key={held.updateId}
                  to="/$organization/$project/$stack/previews/$updateId"
                  params={{ ...stack, updateId: held.updateId }}
                >
                  {updateDetailsTexts.behind(
                    `${viewKind(held).toLowerCase()}${held.version === null ? '' : ` ${held.version}`}`,
                    held.by,
                  )}
                </Link>
              ))}
            </FactRow>
          )}
          {query.data === undefined || query.data.policyPacks.length === 0 ? null : (
            <FactRow name={updateDetailsTexts.policyPacks}>
              {query.data.policyPacks.map(({ name, version }) => (
                <code key={name}>{version === '' ? name : `${name} ${version}`}</code>
              ))}
            </FactRow>
          )}
          {endReason === null ? null : <FactRow name={updateDetailsTexts.ended}>{endReason}</FactRow>}
          {update.resourceCount === null ? null : (
            <FactRow name={updateDetailsTexts.resources}>{update.resourceCount.toLocaleString(numberLocale)}</FactRow>
          )}
        </FactList>
      </Section>
      <Section title={updateDetailsTexts.duration}>
        <Duration query={query} update={update} />
      </Section>
      <Section title={updateDetailsTexts.configuration}>
        <ConfigTable config={update.config} empty={updateDetailsTexts.noConfiguration} />
      </Section>
      <Section title={updateDetailsTexts.environment}>
        {environment.length === 0 ? (
          <p className={styles['none']}>{updateDetailsTexts.noEnvironment}</p>
        ) : (
          <FactList>
            {environment.map(([name, value]) => (
              <FactRow key={name} name={name}>
                <code>{value}</code>
              </FactRow>
            ))}
          </FactList>
        )}
      </Section>
    </div>
  );
}

function Section({ children, title }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section className={styles['section']}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}
