import { Plus } from 'lucide-react';
import { useId } from 'react';
import { Button } from '../../platform/ui/button.tsx';
import { SelectField, TextField } from '../../platform/ui/field.tsx';
import styles from './rule-dialog.module.css';
import type { DraftWindow, SettingsProps } from './rule-draft.ts';
import { freezeFieldsTexts } from './texts.tsx';

const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const maxWindows = 20;

const presets = [
  { name: freezeFieldsTexts.nights, cron: '0 22 * * *', hours: '8' },
  { name: freezeFieldsTexts.weekends, cron: '0 17 * * 5', hours: '61' },
  { name: freezeFieldsTexts.customTimes, cron: '0 9 * * 1-5', hours: '2' },
] as const;

export function FreezeFields({ draft, onChange }: SettingsProps) {
  const { until, windows } = draft;
  const zones = useId();
  const put = (at: number, part: Partial<DraftWindow>): void =>
    onChange({ windows: windows.map((window, each) => (each === at ? { ...window, ...part } : window)) });
  return (
    <>
      <div className={styles['pair']}>
        <SelectField
          label={freezeFieldsTexts.updates}
          value={draft.mode}
          options={[
            ['refuse', freezeFieldsTexts.areRefused],
            ['wait', freezeFieldsTexts.waitInTheQueue],
          ]}
          onChange={({ target }) => onChange({ mode: target.value })}
        />
        <TextField
          label={freezeFieldsTexts.until}
          type="datetime-local"
          hint={freezeFieldsTexts.untilHint}
          value={until}
          onChange={({ target }) => onChange({ until: target.value })}
        />
      </div>
      <datalist id={zones}>
        {Intl.supportedValuesOf('timeZone').map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
      {windows.map((window, at) => (
        <fieldset
          // biome-ignore lint/suspicious/noArrayIndexKey: windows have no other identity.
          key={at}
          className={styles['window']}
        >
          <legend className="unseen">{freezeFieldsTexts.window(at + 1)}</legend>
          <div className={styles['pair']}>
            <TextField
              label={freezeFieldsTexts.startsCron}
              hint={freezeFieldsTexts.cronHint}
              value={window.cron}
              onChange={({ target }) => put(at, { cron: target.value })}
            />
            <TextField
              label={freezeFieldsTexts.hours}
              type="number"
              min={0}
              step="any"
              value={window.hours}
              onChange={({ target }) => put(at, { hours: target.value })}
            />
            <TextField
              label={freezeFieldsTexts.timeZone}
              list={zones}
              value={window.timeZone}
              onChange={({ target }) => put(at, { timeZone: target.value })}
            />
          </div>
          <div>
            <Button
              size="small"
              kind="quiet"
              onClick={() => onChange({ windows: windows.filter((_, each) => each !== at) })}
            >
              {freezeFieldsTexts.removeThisWindow}
            </Button>
          </div>
        </fieldset>
      ))}
      {windows.length >= maxWindows ? null : (
        <div className={styles['presets']}>
          <span>{windows.length === 0 ? freezeFieldsTexts.alwaysOr : freezeFieldsTexts.andAlso}</span>
          {presets.map(({ cron, hours, name }) => (
            <Button
              key={name}
              size="small"
              onClick={() => onChange({ windows: [...windows, { cron, hours, timeZone: ownZone }] })}
            >
              <Plus size={14} aria-hidden="true" />
              {name}
            </Button>
          ))}
        </div>
      )}
    </>
  );
}
