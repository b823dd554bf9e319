import { useMemo, useRef } from 'react';
import type { StackRef, UpdateDetails } from '../platform/app/procedure-types.ts';
import { nameInUrn, shortType } from '../platform/app/resource-name.ts';
import { CutName } from '../platform/ui/cut-name.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { duration } from '../platform/ui/relative-time.ts';
import { useVirtualRows } from '../platform/ui/virtual-rows.ts';
import { viewOperation } from './operations.ts';
import { waterfallChartTexts } from './texts.tsx';
import { useStatistics } from './update-statistics.tsx';
import { isActive } from './update-status.ts';
import { hasRead, type LiveProgress } from './use-progress.ts';
import { useNowSeconds } from './use-update.ts';
import { type Bar, layOutWaterfall, type Waterfall } from './waterfall.ts';
import styles from './waterfall-chart.module.css';

const rowPixels = 28;

export function WaterfallChart({
  live,
  stack,
  update,
}: {
  readonly live: LiveProgress;
  readonly stack: StackRef;
  readonly update: UpdateDetails;
}) {
  const steps = useStatistics(stack, update).data?.steps;
  const path = steps?.criticalPath ?? null;
  const { feed, revision } = live;
  const isLive = isActive(update);
  const ticking = useNowSeconds(isLive);
  const now = isLive ? ticking : (feed.progress.lastTimestamp ?? ticking);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the tree is changed in place; its revision says when.
  const waterfall = useMemo(
    () =>
      layOutWaterfall(
        [...feed.progress.rows.values()].filter((row) => row.op !== 'same'),
        now,
        new Set(path?.steps.map(({ urn }) => urn)),
      ),
    [feed, revision, now, path],
  );
  if (waterfall.bars.length === 0) {
    return (
      <Empty
        title={
          !hasRead(live, update)
            ? waterfallChartTexts.readingTheEvents
            : isLive
              ? waterfallChartTexts.noResourceChangedYet
              : waterfallChartTexts.noResourceChanged
        }
      >
        <p>{waterfallChartTexts.noResourceHint}</p>
      </Empty>
    );
  }
  const total = Math.max(1, waterfall.end - waterfall.start);
  return (
    <section className={styles['chart']} aria-label={waterfallChartTexts.label}>
      <div className={styles['head']}>
        <dl className={styles['facts']}>
          <div>
            <dt>{waterfallChartTexts.allSteps}</dt>
            <dd>{duration(total)}</dd>
          </div>
          <div>
            <dt>{waterfallChartTexts.criticalPath}</dt>
            <dd>
              {path ? duration(path.seconds) : steps ? waterfallChartTexts.unknown : waterfallChartTexts.knownLater}
            </dd>
          </div>
          <div>
            <dt>{waterfallChartTexts.mostAtOnce}</dt>
            <dd>{waterfall.laneCount}</dd>
          </div>
        </dl>
        {path ? (
          <p className={styles['legend']}>
            <span className={styles['swatch']} aria-hidden="true" /> {waterfallChartTexts.criticalPathMeaning}
          </p>
        ) : null}
      </div>
      <div className={styles['axis']} aria-hidden="true">
        <span />
        <div className={styles['ticks']}>
          {listTicks(total).map((tick) => (
            <span key={tick} style={{ left: `${(tick / total) * 100}%` }}>
              {duration(tick)}
            </span>
          ))}
        </div>
      </div>
      <BarRows waterfall={waterfall} total={total} />
    </section>
  );
}

function BarRows({ total, waterfall }: { readonly waterfall: Waterfall; readonly total: number }) {
  const list = useRef<HTMLUListElement>(null);
  const { bars, start } = waterfall;
  const { height, rows } = useVirtualRows({ items: bars, keyOf: urnOf, list, rowPx: rowPixels });
  return (
    <ul ref={list} className={styles['bars']} style={{ height }} data-window-rows>
      {rows.map(({ item, key, offsetPx }) => (
        <BarRow key={key} bar={item} top={offsetPx} start={start} total={total} />
      ))}
    </ul>
  );
}

function urnOf({ row }: Bar): string {
  return row.urn;
}

function BarRow({
  bar,
  start,
  top,
  total,
}: {
  readonly bar: Bar;
  readonly top: number;
  readonly start: number;
  readonly total: number;
}) {
  const { row } = bar;
  const took = bar.end - bar.start;
  const operation = viewOperation(row.op);
  const tone = row.status === 'failed' ? 'failed' : bar.isRunning ? 'running' : operation.tone;
  const left = ((bar.start - start) / total) * 100;
  const width = (took / total) * 100;
  const word =
    row.status === 'failed'
      ? waterfallChartTexts.operationFailed(operation.running)
      : bar.isRunning
        ? operation.running
        : operation.done;
  const text = took < 1 ? '<1 s' : duration(took);
  return (
    <li className={styles['bar']} style={{ transform: `translateY(${top}px)` }} title={row.urn}>
      <span className={styles['name']}>
        <CutName text={nameInUrn(row.urn)} className={styles['resource']} />
        <span className={styles['type']}>{shortType(row.type)}</span>
      </span>
      <span className={styles['track']}>
        <span
          className={`${styles['fill']} ${styles[tone]} ${bar.isCritical ? styles['critical'] : ''}`}
          style={{ left: `${left}%`, width: `${width}%` }}
        />
        <span
          className={styles['took']}
          style={left + width > 80 ? { right: `${100 - left}%` } : { left: `${left + width}%` }}
        >
          {text}
        </span>
      </span>
      <span className="unseen">{waterfallChartTexts.barLabel(word, text, bar.isCritical)}</span>
    </li>
  );
}

const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400];
const maxTicks = 8;

/** Marks of a time axis from 0 to `total` seconds: at most eight, at round times. */
function listTicks(total: number): number[] {
  const step = steps.find((each) => total / each <= maxTicks) ?? Math.ceil(total / maxTicks);
  return Array.from({ length: Math.floor(total / step) + 1 }, (_, at) => at * step);
}
