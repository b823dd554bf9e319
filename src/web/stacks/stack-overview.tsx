import { Link } from '@tanstack/react-router';
import { GitBranch, GitCommitHorizontal } from 'lucide-react';
import type { StackDetails, StackRef } from '../platform/app/procedure-types.ts';
import { lazyPart } from '../platform/ui/chunks.tsx';
import { Clamped } from '../platform/ui/clamped.tsx';
import { Code } from '../platform/ui/code.tsx';
import { ExternalLink } from '../platform/ui/external-link.tsx';
import { FactList, FactRow } from '../platform/ui/fact-list.tsx';
import { duration } from '../platform/ui/relative-time.ts';
import { forgeLink } from '../platform/ui/safe-link.ts';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { Time } from '../platform/ui/time.tsx';
import { StackReferences } from '../search/references/stack-references.tsx';
import { StatusIcon } from '../updates/status-badge.tsx';
import { LatestUpdates } from '../updates/update-list.tsx';
import { shortCommit, viewKind, viewStatus } from '../updates/update-status.ts';
import { OutputTable } from './output-table.tsx';
import { overviewTexts } from './stack/texts.tsx';
import styles from './stack-overview.module.css';
import { StackTags } from './stack-tags.tsx';

const EmbedList = lazyPart(async () => (await import('../embeds/embed-list.tsx')).EmbedList, <Skeleton width="60%" />);
const Readme = lazyPart(async () => (await import('./readme.tsx')).default, <Skeleton width="60%" />);
/** `pulumi stack output readme` prints this Markdown. */
const readmeName = 'readme';

export function StackOverview({ details, stack }: { readonly stack: StackRef; readonly details: StackDetails }) {
  const readme = details.outputs?.find(({ name, value }) => name === readmeName && value?.trim());
  const outputs =
    readme === undefined ? details.outputs : (details.outputs?.filter(({ name }) => name !== readmeName) ?? []);
  return (
    <div className={styles['overview']}>
      <div className={styles['main']}>
        <section className={styles['section']}>
          <h2>{overviewTexts.outputs}</h2>
          <OutputTable stack={stack} outputs={outputs} hasVersion={details.version > 0} />
        </section>
        {readme?.value == null ? null : (
          <section className={styles['section']}>
            <h2>{overviewTexts.readme}</h2>
            <Clamped lines={24} of={overviewTexts.readme}>
              <Readme text={readme.value} isCut={readme.isCut} />
            </Clamped>
          </section>
        )}
        <section className={styles['section']}>
          <div className={styles['head']}>
            <h2>{overviewTexts.latestUpdates}</h2>
            <Link to="." search={{ tab: 'updates' }}>
              {overviewTexts.allUpdates}
            </Link>
          </div>
          <LatestUpdates stack={stack} isBusy={details.active !== null} />
        </section>
      </div>
      <div className={styles['side']}>
        <section className={styles['section']}>
          <h2>{overviewTexts.about}</h2>
          <About details={details} />
        </section>
        <section className={styles['section']}>
          <h2>{overviewTexts.tags}</h2>
          <StackTags stack={stack} tags={details.tags} mayChange={details.permissions.includes('write')} />
        </section>
        <StackReferences stack={stack} />
        {details.permissions.includes('write') ? (
          <section className={styles['section']}>
            <h2>{overviewTexts.badges}</h2>
            <EmbedList owner={stack} />
          </section>
        ) : null}
        <section className={styles['section']}>
          <h2>{overviewTexts.onYourMachine}</h2>
          <Code>{`pulumi stack select ${stack.organization}/${stack.project}/${stack.stack}`}</Code>
        </section>
      </div>
    </div>
  );
}

/** Returns owner and name, from the Git remote. */
function repositoryName(repository: string): string {
  const parts = repository
    .replace(/\.git$/, '')
    .split(/[/:]/)
    .filter(Boolean);
  return parts.slice(-2).join('/');
}

function About({ details }: { readonly details: StackDetails }) {
  const { git, lastUpdate: last } = details;
  return (
    <FactList>
      {last === null ? null : (
        <FactRow name={overviewTexts.last(viewKind(last))}>
          <span className={styles['outcome']}>
            <StatusIcon status={last.result} />
            {viewStatus(last.result).word}
            {last.endedAt === null ? null : (
              <>
                {' '}
                <Time at={last.endedAt} />
              </>
            )}
          </span>
        </FactRow>
      )}
      {last?.startedAt && last.endedAt ? (
        <FactRow name={overviewTexts.duration}>
          {duration((Date.parse(last.endedAt) - Date.parse(last.startedAt)) / 1000)}
        </FactRow>
      ) : null}
      {last?.by == null ? null : <FactRow name={overviewTexts.by}>{last.by}</FactRow>}
      {last?.ciUrl == null ? null : (
        <FactRow name={overviewTexts.ci}>
          <ExternalLink href={last.ciUrl}>{overviewTexts.runOfLast}</ExternalLink>
        </FactRow>
      )}
      {git?.repo == null ? null : (
        <FactRow name={overviewTexts.repository}>
          <ExternalLink href={forgeLink(git.kind, git.repo)}>{repositoryName(git.repo)}</ExternalLink>
        </FactRow>
      )}
      {git?.branch == null ? null : (
        <FactRow name={overviewTexts.branch}>
          <span className={styles['iconed']}>
            <GitBranch size={14} aria-hidden="true" />
            <code>{git.branch}</code>
          </span>
        </FactRow>
      )}
      {git?.commit == null ? null : (
        <FactRow name={overviewTexts.commit}>
          <GitCommitHorizontal size={14} aria-hidden="true" />
          <ExternalLink href={forgeLink(git.kind, git.repo, git.commit)}>
            <code title={git.commit}>{shortCommit(git.commit)}</code>
          </ExternalLink>
        </FactRow>
      )}
      <FactRow name={overviewTexts.drift}>{overviewTexts.driftStates[details.drift]}</FactRow>
      <FactRow name={overviewTexts.created}>
        <Time at={details.createdAt} />
      </FactRow>
    </FactList>
  );
}
