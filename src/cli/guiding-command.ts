import { Command } from 'commander';

/** Answers unknown words with a suggestion, its usage in one line, and a pointer to the help. */
export class GuidingCommand extends Command {
  override createCommand(name?: string): GuidingCommand {
    return new GuidingCommand(name);
  }

  override error(...given: Parameters<Command['error']>): never {
    const usage = this.createHelp().commandUsage(this);
    this.showHelpAfterError(`Usage: ${usage}\nMore:  ${namesOf(this).join(' ')} --help`);
    return super.error(...given);
  }
}

function namesOf(command: Command): string[] {
  return [...(command.parent ? namesOf(command.parent) : []), command.name()];
}
