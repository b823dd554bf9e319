import { useQuery } from '@tanstack/react-query';
import { TriangleAlert } from 'lucide-react';
import { PartProblem, useProblem } from '../platform/app/problem-pages.tsx';
import type { StackRef, UpdateDetails, UpdateStatistics } from '../platform/app/procedure-types.ts';
import { nameInUrn, shortType } from '../platform/app/resource-name.ts';
import { every, trpc } from '../platform/app/trpc.ts';
import { Badge } from '../platform/ui/badge.tsx';
import { FactList, FactRow } from '../platform/ui/fact-list.tsx';
import { duration } from '../platform/ui/relative-time.ts';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { viewOperation } from './operations.ts';
import { useRefetchOnChange } from './refetch-on-change.ts';
import { updateStatisticsTexts } from './texts.tsx';
import styles from './update-statistics.module.css';
import { isActive } from './update-status.ts';

/** Fewer updates are not representative. */
const minUsual = 5;
const changeKinds = ['creates', 'updates', 'replaces', 'deletes'] as const;

/** Refreshed when the update ends. `isWanted` false prevents the request. */
export function useStatistics(stack: StackRef, update: UpdateDetails, isWanted = true) {
  const input = { ...stack, updateId: update.updateId };
  const options = trpc.updates.statistics.queryOptions(input, {
    enabled: isWanted,
    refetchInterval: every(isActive(update) ? 15_000 : null),
  });
  const query = useQuery(options);
  useRefetchOnChange(update.status, isWanted ? query.refetch : null);
  return query;
}

/** The usual durations and changes of the last months' updates, if there are enough of them. */
export function usualOf(statistics: UpdateStatistics | undefined): UpdateStatistics['usual'] {
  const usual = statistics?.usual ?? null;
  return usual !== null && usual.count >= minUsual ? usual : null;
}

/** Compares with the updates of the last months. */
export function Duration({
  query,
  update,
}: {
  readonly query: ReturnType<typeof useStatistics>;
  readonly update: UpdateDetails;
}) {
  const problem = useProblem(query);
  const statistics = query.data;
  if (problem) return <PartProblem {...problem} />;
  if (statistics === undefined) return <Skeleton width="60%" />;
  const { changes, failedBefore, seconds, steps } = statistics;
  const compared = usualOf(statistics);
  const retries = steps?.retries ?? null;
  return (
    <>
      <FactList>
        {seconds === null ? null : (
          <FactRow name={isActive(update) ? updateStatisticsTexts.runningFor : updateStatisticsTexts.duration}>
            {duration(seconds)}
            {compared === null ? null : (
              <Usual value={seconds} range={compared.seconds} median={compared.medians.seconds} show={duration} />
            )}
          </FactRow>
        )}
        {compared === null
          ? null
          : changeKinds.map((name) =>
              changes[name] === 0 && compared.counts[name][1] === 0 ? null : (
                <FactRow key={name} name={updateStatisticsTexts.counts[name]}>
                  {changes[name]}
                  <Usual
                    value={changes[name]}
                    range={compared.counts[name]}
                    median={compared.medians[name]}
                    show={String}
                  />
                </FactRow>
              ),
            )}
        {steps?.criticalPath ? (
          <FactRow name={updateStatisticsTexts.criticalPath}>
            {duration(steps.criticalPath.seconds)}
            <span className={styles['quiet']}>
              {steps.criticalPath.steps.map(({ urn }) => nameInUrn(urn)).join(' → ')}
            </span>
          </FactRow>
        ) : null}
        {failedBefore ? (
          <FactRow name={updateStatisticsTexts.failedBefore}>
            {updateStatisticsTexts.ofTheSameCommit(failedBefore)}
          </FactRow>
        ) : null}
        {retries !== null && retries.repeats + retries.messages > 0 ? (
          <FactRow name={updateStatisticsTexts.signsOfRetries}>
            {retries.repeats + retries.messages}
            <span className={styles['quiet']}>{retries.resources.map(({ urn }) => nameInUrn(urn)).join(', ')}</span>
          </FactRow>
        ) : null}
      </FactList>
      {compared === null ? null : <p className={styles['quiet']}>{updateStatisticsTexts.compared(compared.count)}</p>}
      <SlowestSteps update={update} steps={steps} />
    </>
  );
}

function Usual({
  median,
  range: [from, to],
  show,
  value,
}: {
  readonly value: number;
  readonly median: number;
  readonly range: readonly [number, number];
  readonly show: (value: number) => string;
}) {
  const usual = show(from) === show(to) ? show(to) : updateStatisticsTexts.range(show(from), show(to), show(median));
  return (
    <>
      <span className={styles['quiet']}>{updateStatisticsTexts.usually(usual)}</span>
      {value > to ? (
        <Badge tone="warning" icon={<TriangleAlert size={12} aria-hidden="true" />}>
          {updateStatisticsTexts.moreThanUsual}
        </Badge>
      ) : null}
    </>
  );
}

function SlowestSteps({
  steps,
  update,
}: {
  readonly steps: UpdateStatistics['steps'];
  readonly update: UpdateDetails;
}) {
  if (steps === null)
    return isActive(update) ? null : <p className={styles['quiet']}>{updateStatisticsTexts.slowestLater}</p>;
  const longest = Math.max(1, ...steps.slowest.map(({ seconds }) => seconds));
  if (steps.slowest.length === 0) return null;
  return (
    <ol className={styles['steps']} aria-label={updateStatisticsTexts.slowestSteps}>
      {steps.slowest.map(({ operation, seconds, startSeconds, type, urn }) => (
        <li key={`${urn} ${operation} ${startSeconds}`} className={styles['step']}>
          <span className={styles['name']} title={urn}>
            {nameInUrn(urn)} <span className={styles['quiet']}>{shortType(type)}</span>
          </span>
          <span className={styles['quiet']}>{viewOperation(operation).planned}</span>
          <span className={styles['seconds']}>{duration(seconds)}</span>
          <meter
            className={styles['meter']}
            min={0}
            max={longest}
            value={seconds}
            aria-label={updateStatisticsTexts.seconds(seconds)}
          />
        </li>
      ))}
    </ol>
  );
}
