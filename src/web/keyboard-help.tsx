import styles from './keyboard-help.module.css';
import { keyboardTexts } from './platform/app/texts.tsx';
import { Dialog } from './platform/ui/dialog.tsx';

const shortcuts: readonly (readonly [keys: readonly string[], effect: string])[] = [
  [['Ctrl K'], keyboardTexts.goToPage],
  [['/'], keyboardTexts.goToFilter],
  [['j', 'k'], keyboardTexts.moveInList],
  [['Enter'], keyboardTexts.openStack],
  [['Esc'], keyboardTexts.closeOrClear],
  [['?'], keyboardTexts.show],
];

export default function KeyboardHelp({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title={keyboardTexts.title} isOpen onClose={onClose}>
      <dl className={styles['keys']}>
        {shortcuts.map(([keys, effect]) => (
          <div key={effect} className={styles['row']}>
            <dt>
              {keys.map((key) => (
                <kbd key={key} className={styles['key']}>
                  {key}
                </kbd>
              ))}
            </dt>
            <dd>{effect}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
