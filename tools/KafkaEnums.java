import java.lang.reflect.Field;

import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/**
 * Prints enumerations of a release. The arguments are a class, the field that has its number, and so on. Each line of
 * output is a class, a constant, its number, and whether it is an error after which a client retries. A class that the
 * release lacks has no line.
 */
public final class KafkaEnums {
    private KafkaEnums() {
    }

    public static void main(String[] arguments) throws Exception {
        for (int at = 0; at < arguments.length; at += 2) {
            Class<?> type;
            try {
                type = Class.forName(arguments[at]);
            } catch (ClassNotFoundException absent) {
                continue;
            }
            Field number = type.getDeclaredField(arguments[at + 1]);
            number.setAccessible(true);
            for (Object each : type.getEnumConstants()) {
                boolean retriable = each instanceof Errors error && error.exception() instanceof RetriableException;
                String name = ((Enum<?>) each).name();
                System.out.println(type.getName() + " " + name + " " + number.get(each) + " " + retriable);
            }
        }
    }
}
