import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { StackRef, UpdateDetails } from '../app/contract.ts';
import { ConfigTable } from '../stacks/config-table.tsx';
import { CopyButton } from '../ui/code.tsx';
import { FactList, FactRow } from '../ui/fact-list.tsx';
import styles from './update-details.module.css';
import { viewEndReason } from './update-status.ts';

/** What an update ran with: configuration, environment, policies. */
export function UpdateDetailsView({ stack, update }: { readonly stack: StackRef; readonly update: UpdateDetails }) {
  const environment = Object.entries(update.environment ?? {}).sort(([one], [other]) => (one < other ? -1 : 1));
  return (
    <div className={styles['details']}>
      <Section title="Run">
        <FactList>
          <FactRow name="Id">
            <code>{update.updateId}</code>
            <CopyButton text={update.updateId} label="Copy the id" />
          </FactRow>
          {update.baseVersion === null ? null : (
            <FactRow name="Began from">
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
                the preview before it
              </Link>
            </FactRow>
          )}
          {update.endReason === null ? null : <FactRow name="Ended">{viewEndReason(update.endReason)}</FactRow>}
          {update.resourceCount === null ? null : <FactRow name="Resources">{update.resourceCount}</FactRow>}
        </FactList>
      </Section>
      <Section title="Configuration">
        <ConfigTable config={update.config} empty="This update had no configuration." />
      </Section>
      <Section title="Environment">
        {environment.length === 0 ? (
          <p className={styles['none']}>The CLI sent nothing about where it ran.</p>
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
