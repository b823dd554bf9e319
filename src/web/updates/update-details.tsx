import { Link } from '@tanstack/react-router';
import { TriangleAlert } from 'lucide-react';
import type { ReactNode } from 'react';
import type { StackRef, UpdateDetails } from '../platform/app/contract.ts';
import { CopyButton } from '../platform/ui/code.tsx';
import { FactList, FactRow } from '../platform/ui/fact-list.tsx';
import { Notice } from '../platform/ui/notification.tsx';
import { duration } from '../platform/ui/relative-time.ts';
import { ConfigTable } from './config-table.tsx';
import styles from './update-details.module.css';
import { Duration, useStatistics } from './update-statistics.tsx';
import { viewEndReason, viewKind } from './update-status.ts';

/** The environment and the timing of an update, and related updates. */
export function UpdateDetailsView({ stack, update }: { readonly stack: StackRef; readonly update: UpdateDetails }) {
  const environment = Object.entries(update.environment ?? {}).sort(([one], [other]) => (one < other ? -1 : 1));
  const statistics = useStatistics(stack, update);
  const removed = statistics?.removedOutputs ?? null;
  const endReason = viewEndReason(update.endReason);
  return (
    <div className={styles['details']}>
      {removed === null ? null : (
        <Notice
          tone={removed.consumers === null ? 'neutral' : 'warning'}
          icon={<TriangleAlert size={16} />}
          title={
            removed.isUnknown
              ? `Unknown whether it ${update.dryRun ? 'would remove' : 'removed'} outputs`
              : `${update.dryRun ? 'Would remove' : 'Removed'} ${removed.names.length === 1 ? 'an output' : `${removed.names.length} outputs`}`
          }
        >
          {removed.isUnknown ? (
            <p>Its events could not be read when it ended.{update.dryRun ? ' Run a new preview.' : ''}</p>
          ) : (
            <p className={styles['removed']}>
              {removed.names.slice(0, 20).map((name) => (
                <code key={name}>{name}</code>
              ))}
              {removed.names.length > 20 ? ' and more' : ''}
            </p>
          )}
          <p>
            {removed.consumers === null
              ? 'No other stack reads outputs of this stack.'
              : `The outputs of this stack are read by ${removed.consumers}.`}
          </p>
        </Notice>
      )}
      <Section title="Run">
        <FactList>
          <FactRow name="Id">
            <code>{update.updateId}</code>
            <CopyButton text={update.updateId} label="Copy the id" />
          </FactRow>
          {update.baseVersion === null ? null : (
            <FactRow name="Based on">
              <Link
                to="/$organization/$project/$stack/updates/$version"
                params={{ ...stack, version: String(update.baseVersion) }}
              >
                version {update.baseVersion}
              </Link>
            </FactRow>
          )}
          {update.preview === null ? null : (
            <FactRow name="Preview">
              <Link
                to="/$organization/$project/$stack/previews/$updateId"
                params={{ ...stack, updateId: update.preview }}
              >
                the preview
              </Link>
            </FactRow>
          )}
          {update.follower === null ? null : (
            <FactRow name="Followed by">
              <Link
                to="/$organization/$project/$stack/previews/$updateId"
                params={{ ...stack, updateId: update.follower }}
              >
                the update
              </Link>
            </FactRow>
          )}
          {update.waited === null ? null : (
            <FactRow name="Waited in queue">
              {duration(update.waited.seconds)}
              {update.waited.behind.length === 0
                ? ', because of a limit or a freeze'
                : update.waited.behind.map((held) => (
                    <Link
                      key={held.updateId}
                      to="/$organization/$project/$stack/previews/$updateId"
                      params={{ ...stack, updateId: held.updateId }}
                    >
                      {`behind ${viewKind(held).toLowerCase()}${held.version === null ? '' : ` ${held.version}`}${held.by === null ? '' : ` by ${held.by}`}`}
                    </Link>
                  ))}
            </FactRow>
          )}
          {statistics === undefined || statistics.policyPacks.length === 0 ? null : (
            <FactRow name="Policy packs">
              {statistics.policyPacks.map(({ name, version }) => (
                <code key={name}>{version === '' ? name : `${name} ${version}`}</code>
              ))}
            </FactRow>
          )}
          {endReason === null ? null : <FactRow name="Ended">{endReason}</FactRow>}
          {update.resourceCount === null ? null : (
            <FactRow name="Resources">{update.resourceCount.toLocaleString('en')}</FactRow>
          )}
        </FactList>
      </Section>
      <Section title="Duration">
        <Duration statistics={statistics} update={update} />
      </Section>
      <Section title="Configuration">
        <ConfigTable config={update.config} empty="This update had no configuration." />
      </Section>
      <Section title="Environment">
        {environment.length === 0 ? (
          <p className={styles['none']}>The CLI reported no environment.</p>
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
